import RelayModel

/// The requirements that several comparisons with constants place on one field.
struct FieldWish {
    typealias Term = Contradiction.Term

    /// Bounds for each kind of value that has an order.
    private struct Orders {
        var numbers = Bounds<Double>()
        var moments = Bounds<Timestamp>()
        var texts = Bounds<String>()

        /// Returns whether one of these bounds leaves no value within `others`.
        func leaveNothing(within others: Orders) -> Bool {
            numbers.leaveNothing(within: others.numbers)
                || moments.leaveNothing(within: others.moments)
                || texts.leaveNothing(within: others.texts)
        }
    }

    /// Whether numbers in the field have no fraction.
    private let isWhole: Bool
    private var equal: FieldValue?
    private var others: [FieldValue] = []
    private var choice: [FieldValue]?
    /// The number of values at the start of `choice` that do not fit.
    ///
    /// A value that one comparison has ruled out stays ruled out, so later checks skip it. A list
    /// may have ten thousand values.
    private var ruledOut = 0
    /// Bounds from comparisons that must hold.
    ///
    /// The value must be of the kind of the bounds.
    private var asked = Orders()
    /// Bounds from comparisons that must not hold.
    ///
    /// They apply only if the value is of their kind.
    private var spared = Orders()
    /// The required prefixes of the text, and the required suffixes with their bytes reversed.
    private var beginnings: [[UInt8]] = []
    private var ends: [[UInt8]] = []

    init(isWhole: Bool) {
        self.isWhole = isWhole
    }

    /// Adds the requirement of a comparison.
    ///
    /// Returns `false` if no value can satisfy all requirements.
    mutating func take(_ term: Term) -> Bool {
        switch term.comparator {
        case .equal:
            if let known = equal, Self.areOther(known, term.value) { return false }
            equal = term.value
        case .notEqual: others.append(term.value)
        case .in:
            guard case .list(let values) = term.value else { return true }
            choice =
                choice.map { known in
                    let wanted = WantedValues(values)
                    return known.filter(wanted.mayHave)
                } ?? values
            ruledOut = 0
        case .less, .lessOrEqual:
            narrow(\.asked, .below, term, term.value, term.comparator == .less)
        case .greater, .greaterOrEqual:
            narrow(\.asked, .above, term, term.value, term.comparator == .greater)
        case .between:
            guard case .list(let bounds) = term.value, bounds.count == 2 else { return true }
            narrow(\.asked, .above, term, bounds[0], false)
            narrow(\.asked, .below, term, bounds[1], false)
        case .beginsWith:
            guard let text = Self.plainText(term.value) else { return true }
            // A text with a prefix is never less than the prefix.
            if term.isApple { asked.texts.narrow(.above, text, false) }
            guard Self.add(Array(text.utf8), to: &beginnings) else { return false }
        case .endsWith:
            guard let text = Self.plainText(term.value) else { return true }
            guard Self.add(text.utf8.reversed(), to: &ends) else { return false }
        default: return true
        }
        return isPossible()
    }

    /// Adds a comparison that must not hold.
    ///
    /// Returns `false` if no value can satisfy all requirements.
    mutating func refuse(_ term: Term) -> Bool {
        switch term.comparator {
        case .equal: others.append(term.value)
        case .less, .lessOrEqual:
            narrow(\.spared, .above, term, term.value, term.comparator == .lessOrEqual)
        case .greater, .greaterOrEqual:
            narrow(\.spared, .below, term, term.value, term.comparator == .greaterOrEqual)
        default: return true
        }
        return isPossible()
    }

    /// Returns a text that is equal only to its own bytes, or `nil`.
    ///
    /// An empty text does not count.
    private static func plainText(_ value: FieldValue) -> String? {
        guard case .string(let text) = value, !text.isEmpty, Candidates.isOfOneForm(value) else {
            return nil
        }
        return text
    }

    /// Adds a required prefix.
    ///
    /// Returns `false` if it contradicts another one.
    private static func add(_ bytes: [UInt8], to all: inout [[UInt8]]) -> Bool {
        all.append(bytes)
        return !all.contains { zip($0, bytes).contains { $0 != $1 } }
    }

    private mutating func narrow(
        _ orders: WritableKeyPath<Self, Orders>, _ side: BoundSide, _ term: Term,
        _ bound: FieldValue, _ isOpen: Bool
    ) {
        switch bound {
        case .timestamp(let moment): self[keyPath: orders].moments.narrow(side, moment, isOpen)
        case .string(let text) where term.isApple:
            self[keyPath: orders].texts.narrow(side, text, isOpen)
        default:
            guard let number = Self.number(bound) else { return }
            if isWhole {
                self[keyPath: orders].numbers.narrow(side, side.whole(number, isOpen), false)
            } else {
                self[keyPath: orders].numbers.narrow(side, number, isOpen)
            }
        }
    }

    private mutating func isPossible() -> Bool {
        if asked.leaveNothing(within: spared) || isOnlyOther { return false }
        if let choice {
            while ruledOut < choice.count, !fits(choice[ruledOut]) { ruledOut += 1 }
            guard ruledOut < choice.count else { return false }
        }
        guard let equal else { return true }
        return fits(equal) && choice?.allSatisfy { Self.areOther($0, equal) } != true
    }

    /// Whether the bounds leave a single value, and that value is excluded.
    private var isOnlyOther: Bool {
        guard !others.isEmpty else { return false }
        let number = asked.numbers.only(within: spared.numbers)
        let moment = asked.moments.only(within: spared.moments)
        let text = asked.texts.only(within: spared.texts)
        return others.contains { other in
            switch other {
            case .timestamp(let one): one == moment
            case .string(let one): one == text
            default: number != nil && Self.number(other) == number
            }
        }
    }

    private func fits(_ value: FieldValue) -> Bool {
        if let equal, Self.areOther(equal, value) { return false }
        guard isWithinBounds(value) else { return false }
        return !others.contains { $0 == value && !value.isNull }
    }

    private func isWithinBounds(_ value: FieldValue) -> Bool {
        switch value {
        // Nil has no order.
        case .null: return asked.numbers.isFree && asked.moments.isFree && asked.texts.isFree
        case .timestamp(let moment): return asked.moments.have(moment)
        case .string(let text): return asked.texts.have(text)
        default: break
        }
        guard let number = Self.number(value) else { return true }
        if isWhole, number != number.rounded() { return false }
        return asked.numbers.have(number)
    }

    /// Returns whether two constants are certainly different under every dialect's rules.
    private static func areOther(_ left: FieldValue, _ right: FieldValue) -> Bool {
        if let first = number(left), let second = number(right) { return first != second }
        switch (left, right) {
        case (.string(let first), .string(let second)): return first != second
        case (.timestamp(let first), .timestamp(let second)): return first != second
        case (.string, _) where number(right) != nil: return true
        case (_, .string) where number(left) != nil: return true
        case (.null, .string), (.string, .null): return true
        case (.null, _) where number(right) != nil: return true
        case (_, .null) where number(left) != nil: return true
        default: return false
        }
    }

    /// Returns the value as a number that a double represents exactly.
    ///
    /// Returns `nil` for all other values.
    static func number(_ value: FieldValue) -> Double? {
        switch value {
        case .integer(let number): number.magnitude <= 1 << 53 ? Double(number) : nil
        case .double(let number): number.isFinite ? number : nil
        default: nil
        }
    }
}

/// The values of a list, in sets for fast lookup.
///
/// The comparison of two values is that of `FieldWish.areOther`, without comparing each value with
/// each.
private struct WantedValues {
    private var numbers: Set<Double> = []
    private var moments: Set<Timestamp> = []
    private var texts: Set<String> = []
    private var hasNull = false
    private var hasOther = false

    init(_ values: [FieldValue]) {
        for value in values {
            switch value {
            case .timestamp(let moment): moments.insert(moment)
            case .string(let text): texts.insert(text)
            case .null: hasNull = true
            default:
                if let number = FieldWish.number(value) {
                    numbers.insert(number)
                } else {
                    hasOther = true
                }
            }
        }
    }

    /// Returns whether a value may be equal to one of the list's values.
    func mayHave(_ value: FieldValue) -> Bool {
        if hasOther { return true }
        switch value {
        case .timestamp(let moment):
            return moments.contains(moment) || hasNull || !numbers.isEmpty || !texts.isEmpty
        case .string(let text): return texts.contains(text) || !moments.isEmpty
        case .null: return hasNull || !moments.isEmpty
        default: break
        }
        if let number = FieldWish.number(value) {
            return numbers.contains(number) || !moments.isEmpty
        }
        return hasNull || !numbers.isEmpty || !moments.isEmpty || !texts.isEmpty
    }
}
