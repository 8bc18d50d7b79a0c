import RelayModel

/// What one field must be for several comparisons with constants to hold.
struct FieldWish {
    typealias Term = Contradiction.Term

    /// Bounds of everything that has an order.
    private struct Orders {
        var numbers = Bounds<Double>()
        var moments = Bounds<Timestamp>()
        var texts = Bounds<String>()

        /// Whether nothing that they ask for lies within `others` too.
        func leaveNothing(within others: Orders) -> Bool {
            numbers.leaveNothing(within: others.numbers)
                || moments.leaveNothing(within: others.moments)
                || texts.leaveNothing(within: others.texts)
        }
    }

    /// Whether its numbers have no fraction.
    private let isWhole: Bool
    private var equal: FieldValue?
    private var others: [FieldValue] = []
    private var choice: [FieldValue]?
    /// So many at the beginning of the choice do not fit: what one comparison has ruled out stays
    /// so, however many come after it, and a list may have ten thousand values.
    private var ruledOut = 0
    /// Between what it lies, and so is of that kind.
    private var asked = Orders()
    /// Between what it lies if it is of that kind: a comparison must not hold.
    private var spared = Orders()
    /// With what its text begins and ends, the ends backwards.
    private var beginnings: [[UInt8]] = []
    private var ends: [[UInt8]] = []

    init(isWhole: Bool) {
        self.isWhole = isWhole
    }

    /// Adds what a comparison asks for; false if nothing can be all of it.
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
            // No text that begins so is less, whatever comes then.
            if term.isApple { asked.texts.narrow(.above, text, false) }
            guard Self.add(Array(text.utf8), to: &beginnings) else { return false }
        case .endsWith:
            guard let text = Self.plainText(term.value) else { return true }
            guard Self.add(text.utf8.reversed(), to: &ends) else { return false }
        default: return true
        }
        return isPossible()
    }

    /// Adds a comparison that must not hold; false if nothing can be all that is asked for.
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

    /// A text that is only equal to its own bytes; empty ones are none.
    private static func plainText(_ value: FieldValue) -> String? {
        guard case .string(let text) = value, !text.isEmpty, Candidates.isOfOneForm(value) else {
            return nil
        }
        return text
    }

    /// Adds the bytes with which a text begins; false if it begins with others.
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

    /// Whether its bounds leave one value, and that is one which it must not be.
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

    /// Whether two constants are certainly not the same to any comparison.
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

    /// Numbers that a double holds exactly; whatever else has an order is left alone.
    static func number(_ value: FieldValue) -> Double? {
        switch value {
        case .integer(let number): number.magnitude <= 1 << 53 ? Double(number) : nil
        case .double(let number): number.isFinite ? number : nil
        default: nil
        }
    }
}

/// The values of a list, for whoever asks of many others whether they may be among them: as
/// `FieldWish.areOther` has it of two, without each being held against each.
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

    /// Whether a value may be the same as one of them.
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
