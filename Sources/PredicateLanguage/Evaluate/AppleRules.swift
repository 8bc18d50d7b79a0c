import RelayModel

/// The rules for comparisons in NSPredicate and in CloudKit.
enum AppleRules {
    typealias Options = RecordPredicate.TextOptions

    /// Compares two values, element by element if there is a quantifier.
    static func compare(
        _ left: FieldValue, _ right: FieldValue, as comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        guard let quantifier = comparison.source.quantifier else {
            if case .anyKey = comparison.left {
                return try quantified(.any, left, right, as: comparison)
            }
            return try compareScalars(left, right, as: comparison)
        }
        return try quantified(quantifier, left, right, as: comparison)
    }

    private static func quantified(
        _ quantifier: RecordPredicate.Quantifier, _ left: FieldValue, _ right: FieldValue,
        as comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        switch left {
        case .null: return quantifier != .any
        case .list(let values): return try quantified(quantifier, values, right, as: comparison)
        case .set(let values):
            return try quantifiedWithoutOrder(quantifier, values, right, as: comparison)
        case .map(let members):
            return try quantifiedWithoutOrder(
                quantifier, members.values, right, as: comparison)
        default: throw .quantifierOnScalar(found: left.kind)
        }
    }

    private static func quantified(
        _ quantifier: RecordPredicate.Quantifier, _ values: some Sequence<FieldValue>,
        _ right: FieldValue, as comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        for value in values {
            let holds = try compareScalars(value, right, as: comparison)
            switch quantifier {
            case .any where holds: return true
            case .all where !holds: return false
            case .none where holds: return false
            default: continue
            }
        }
        return quantifier != .any
    }

    /// Compares unordered values under a quantifier.
    ///
    /// A value that decides the result does so even if others are errors, because every process
    /// goes through sets and dictionaries in a different order.
    private static func quantifiedWithoutOrder(
        _ quantifier: RecordPredicate.Quantifier, _ values: some Collection<FieldValue>,
        _ right: FieldValue, as comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        var failure: EvaluationError?
        for value in values {
            do throws(EvaluationError) {
                // A single value either decides the result or leaves it as for no values.
                let alone = CollectionOfOne(value)
                let holds = try quantified(quantifier, alone, right, as: comparison)
                if holds == (quantifier == .any) { return holds }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return quantifier != .any
    }

    /// Compares two values without a quantifier.
    private static func compareScalars(
        _ left: FieldValue, _ right: FieldValue, as comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        let options = comparison.source.options
        switch comparison.source.comparator {
        case .equal: return areEqual(left, right, options)
        case .notEqual: return !areEqual(left, right, options)
        case .less: return try order(left, right, options, nilsAreEqual: false) { $0 < 0 }
        case .lessOrEqual: return try order(left, right, options, nilsAreEqual: true) { $0 <= 0 }
        case .greater: return try order(left, right, options, nilsAreEqual: false) { $0 > 0 }
        case .greaterOrEqual:
            return try order(left, right, options, nilsAreEqual: true) { $0 >= 0 }
        case .between: return try isBetween(left, right, options)
        case .in: return try isMember(left, of: right, comparison)
        case .contains: return try contains(left, right, comparison)
        case .beginsWith: return try hasText(left, right, at: .start, comparison)
        case .endsWith: return try hasText(left, right, at: .end, comparison)
        case .like, .matches: return try matches(left, right, comparison)
        case .tokenMatches: return try hasToken(left, right, comparison)
        case .typeEquals: return try isSameType(left, right)
        case .geoWithin: throw .wrongKind(operation: "GEOWITHIN", found: left.kind)
        }
    }

    // MARK: Equality and order

    /// Returns whether two values are equal.
    ///
    /// Values of different kinds are not equal, which is not an error.
    static func areEqual(_ left: FieldValue, _ right: FieldValue, _ options: Options) -> Bool {
        switch (left, right) {
        case (.integer(let a), .integer(let b)): return a == b
        case (.string(let a), .string(let b)): return TextComparison.areEqual(a, b, options)
        case (.null, .null): return true
        case (.timestamp(let a), .timestamp(let b)): return a == b
        case (.bytes(let a), .bytes(let b)): return a == b
        case (.reference(let a), .reference(let b)): return a == b
        case (.location(let a), .location(let b)): return a == b
        case (.uuid(let a), .uuid(let b)): return a == b
        case (.objectID(let a), .objectID(let b)): return a == b
        case (.list(let a), .list(let b)):
            return a.count == b.count
                && zip(a, b).allSatisfy { areEqual($0, $1, options) }
        case (.set, .set): return left == right || left.inOneForm == right.inOneForm
        case (.map(let a), .map(let b)):
            // A member that is nil differs from a missing member, so both sides must have the same
            // number.
            return a.count == b.count
                && a.allSatisfy { name, value in
                    b[name].map { areEqual(value, $0, options) } ?? false
                }
        default:
            guard let a = Number(left), let b = Number(right) else { return false }
            return Number.order(a, b) == 0
        }
    }

    /// Returns whether `accepts` holds for the order of two values.
    ///
    /// Nil has no order.
    @inline(__always)
    static func order(
        _ left: FieldValue, _ right: FieldValue, _ options: Options, nilsAreEqual: Bool,
        _ accepts: (Int) -> Bool
    ) throws(EvaluationError) -> Bool {
        switch (left, right) {
        case (.integer(let a), .integer(let b)): return accepts(a == b ? 0 : a < b ? -1 : 1)
        case (.null, .null): return nilsAreEqual
        case (.null, _), (_, .null): return false
        case (.string(let a), .string(let b)):
            return accepts(TextComparison.order(a, b, options))
        case (.timestamp(let a), .timestamp(let b)): return accepts(a == b ? 0 : a < b ? -1 : 1)
        default:
            guard let a = Number(left), let b = Number(right) else {
                throw .unordered(left: left.kind, right: right.kind)
            }
            return Number.order(a, b).map(accepts) ?? false
        }
    }

    private static func isBetween(
        _ value: FieldValue, _ bounds: FieldValue, _ options: Options
    ) throws(EvaluationError) -> Bool {
        guard case .list(let ends) = bounds, ends.count == 2 else { throw .badBounds }
        // A nil value lies within no bounds, not even between two nils.
        if value.isNull { return false }
        guard try order(ends[0], value, options, nilsAreEqual: false, { $0 <= 0 }) else {
            return false
        }
        return try order(value, ends[1], options, nilsAreEqual: false) { $0 <= 0 }
    }
}
