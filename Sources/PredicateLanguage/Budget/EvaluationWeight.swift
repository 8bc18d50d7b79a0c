package import RelayModel

/// The cost of evaluating a condition, estimated from the condition alone.
///
/// Nearly every condition reads the record at most a few times, whatever the record holds. Such a
/// condition is evaluated without counting steps. Other conditions can take a number of steps that
/// is a product of what the record holds. Their evaluations are metered, and end at
/// `Limits.maximumEvaluationSteps`.
public struct EvaluationWeight: Sendable, Hashable {
    /// The maximum number of times that the record's longest value is read, if no loops are nested.
    public private(set) var passes = 0
    /// Whether a loop over values may be nested in another one.
    public private(set) var hasProducts = false

    /// The maximum number of unmetered passes.
    ///
    /// That many passes over a record of 1 MB stay within the budget.
    static let mostPasses = 16

    /// Whether evaluations must be metered because some record could make them take too long.
    public var isMetered: Bool { hasProducts || passes > Self.mostPasses }

    /// Creates a weight of zero.
    package init() {}

    /// Creates the weight of a part of a condition.
    public init(_ node: RecordPredicate.Node) {
        add(node)
    }

    private mutating func add(_ node: RecordPredicate.Node) {
        switch node {
        case .constant: return
        case .not(let inner): add(inner)
        case .and(let nodes), .or(let nodes): nodes.forEach { add($0) }
        case .comparison(let comparison): add(comparison)
        }
    }

    /// Returns an estimate of the steps of one evaluation of an unmetered condition.
    ///
    /// `reading` is the value of ``reading(of:)`` for the record.
    package func steps(reading: Int) -> Int {
        StepMeter.comparison + passes * (reading / 4)
    }

    /// Returns the number of steps to read a whole record once.
    package static func reading(of fields: RecordFields) -> Int {
        (try? StepMeter().extent(of: .map(fields)).reading) ?? Limits.maximumEvaluationSteps
    }

    /// Adds a comparison.
    package mutating func add(_ comparison: RecordPredicate.Comparison) {
        if let own = comparison.plainPasses { passes += own } else { hasProducts = true }
    }

    /// Adds a comparison under Apple's rules and without options, by order, by equality or with a
    /// list of constants, of a field with a constant.
    ///
    /// Pass `true` for `isSearch` if the comparison searches for the constant inside the field
    /// instead.
    package mutating func addPlain(isSearch: Bool) {
        if isSearch { passes += RecordPredicate.Comparison.search }
    }
}

extension RecordPredicate.Comparison {
    /// Passes for a search in a text.
    static let search = 2
    /// Passes over a text that must be folded.
    private static let folding = 8

    /// The number of times that the comparison reads a value of the record, or `nil` if the number
    /// of steps may be a product.
    var plainPasses: Int? {
        guard let first = left.plainPasses, let second = right.plainPasses else { return nil }
        let isQuantified = quantifier != nil || rightQuantifier != nil
        guard let constant = right.literal else {
            // Two values of the record are read once, side by side. A constant on the left of a
            // field costs the same as one on its right.
            guard rules != .realm, !isQuantified else { return nil }
            if let constant = left.literal {
                let isShort = constant.isShort && constant.elementCount == nil
                let isKnown = comparator.isRelational || comparator == .in && rules == .apple
                guard isShort, isKnown else { return nil }
            } else if !comparator.isRelational {
                return nil
            }
            return first + second + (options.folds ? Self.folding : Self.search)
        }
        guard let own = passes(over: constant, isQuantified: isQuantified) else { return nil }
        return first + second + own
    }

    private func passes(over constant: FieldValue, isQuantified: Bool) -> Int? {
        // Lists are compared element by element, each with the constant.
        let isSpread = isQuantified || rules != .apple || options.folds
        if isSpread, comparator != .in, comparator != .geoWithin, !constant.isShort { return nil }
        let once = options.folds ? Self.folding : Self.search
        switch comparator {
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .between:
            if constant.elementCount != nil, isSpread, comparator != .between { return nil }
            return isSpread ? once : 0
        case .in: return isPreparable(constant) ? (isSpread ? once : 0) : nil
        case .beginsWith, .endsWith, .contains, .typeEquals:
            if comparator == .contains, constant.elementCount != nil { return nil }
            return rules == .realm || left == .record || comparator == .typeEquals
                ? Self.folding : once
        case .like: return (1 + constant.byteCount / 64) * (rules == .realm ? Self.folding : once)
        case .tokenMatches:
            // Realm's search tries each word with a star on each word of the text.
            return constant.isShort && rules == .apple ? Self.folding : nil
        case .matches, .geoWithin: return nil
        }
    }

    /// Returns whether a constant list can be sorted in advance, so that a lookup costs next to
    /// nothing.
    private func isPreparable(_ constant: FieldValue) -> Bool {
        guard rules == .apple || rules == .realm && !options.folds,
            !options.contains(.normalized)
        else { return false }
        guard let elements = constant.elements else {
            // A substring search.
            return rules == .apple && quantifier == nil && constant.isShort
        }
        return elements.allSatisfy { element in
            switch element {
            case .list, .set, .map: false
            case .bytes: rules == .apple
            case .string(let text): rules == .apple || text.utf8.allSatisfy { $0 < 0x80 }
            default: true
            }
        }
    }
}

extension RecordPredicate.Expression {
    /// The number of times that the expression reads a value of the record, or `nil` if it may go
    /// through many values for each of many others.
    var plainPasses: Int? {
        switch self {
        case .constant: return 0
        case .path(let path): return path.plainPasses
        case .arithmetic(.add, let left, let right), .arithmetic(.subtract, let left, let right),
            .arithmetic(.multiply, let left, let right),
            .arithmetic(.divide, let left, let right):
            guard let first = left.plainPasses, let second = right.plainPasses else { return nil }
            return first + second
        case .negative(let inner): return inner.plainPasses
        case .call(.now, _): return 0
        case .call(.distance, let arguments):
            return arguments.reduce(0) { sum, argument in
                argument.plainPasses.flatMap { own in sum.map { $0 + own } }
            }
        case .call(.length, let arguments): return arguments.first?.plainPasses.map { $0 + 1 }
        default: return nil
        }
    }
}

extension RecordPredicate.RecordPath {
    /// Zero for a plain field, one pass per component for a path that may go through a list, and
    /// `nil` for a path that may go through lists of lists.
    var plainPasses: Int? {
        guard components.count > 1 else {
            if case .member? = components.first { return 0 }
            return components.isEmpty ? 0 : nil
        }
        guard components.count <= 8 else { return nil }
        for component in components.dropLast() {
            guard case .member = component else { return nil }
        }
        switch components.last {
        case .member, .size, .collection(.count), .first, .last: return components.count
        default: return nil
        }
    }
}

extension FieldValue {
    /// Whether repeated comparisons with this value take about as long as with a small value.
    var isShort: Bool {
        switch self {
        case .string(let text): text.utf8.count <= 256
        case .bytes(let bytes): bytes.count <= 1024
        case .list(let values): values.count <= 2 && values.allSatisfy { $0.isShort }
        case .set, .map: false
        default: true
        }
    }
}
