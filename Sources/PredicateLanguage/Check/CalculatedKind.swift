import RelayModel

/// The kind of a calculated side, where it is known whatever the record holds: a number of elements
/// is a number, and `uppercase(…)` is a text or an evaluation error.
enum CalculatedKind {
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression
    typealias FieldType = RecordSchema.FieldType

    /// Returns whether a comparison compares a calculated side with a value that it can never have,
    /// as `length(a) == '5'` does, or asks for the elements of a side that has none.
    static func isMistaken(_ comparison: Comparison) -> Bool {
        guard comparison.rightQuantifier == nil else { return false }
        let left = kind(of: comparison.left, comparison.rules)
        switch (comparison.quantifier, comparison.rules) {
        case (nil, _), (.any?, .realm): break
        case (.any?, .apple): return left != nil
        default: return false
        }
        let right = kind(of: comparison.right, comparison.rules)
        switch comparison.comparator {
        case .equal, .less, .lessOrEqual, .greater, .greaterOrEqual:
            return isOther(comparison.right.literal, than: left)
                || isOther(comparison.left.literal, than: right)
        case .between:
            guard case .list(let bounds)? = comparison.right.literal else { return false }
            return bounds.contains { isOther($0, than: left) }
        case .in:
            guard case .list(let values)? = comparison.right.literal else { return false }
            return values.allSatisfy { isOther($0, than: left) }
        case .beginsWith, .endsWith, .like, .matches:
            return comparison.rules == .apple && (isNoText(left) || isNoText(right))
        case .contains, .tokenMatches: return comparison.rules == .apple && isNoText(left)
        default: return false
        }
    }

    /// Returns whether a constant is of another kind than `type`.
    ///
    /// `nil` and collections never count as of another kind.
    private static func isOther(_ value: FieldValue?, than type: FieldType?) -> Bool {
        guard let type, let value, let own = FieldType(of: value), own.isScalar else {
            return false
        }
        return !own.agrees(with: type)
    }

    private static func isNoText(_ type: FieldType?) -> Bool {
        guard let type else { return false }
        return type != .string
    }

    private static func kind(
        of side: Expression, _ rules: RecordPredicate.RuleSet
    ) -> FieldType? {
        switch (side, rules) {
        case (.path(let path), .apple), (.path(let path), .realm), (.member(_, let path), .apple),
            (.member(_, let path), .realm):
            let last = path.components.last
            return last == .collection(.count) || last == .size ? .double : nil
        case (.negative, .apple), (.complement, .apple): return .double
        case (.arithmetic(let symbol, _, _), .apple):
            return [.union, .intersect, .minus].contains(symbol) ? nil : .double
        case (.call(let function, _), .apple): return kind(of: function)
        case (.cast(_, let target), .apple): return kind(of: target)
        default: return nil
        }
    }

    private static func kind(of function: RecordPredicate.Function) -> FieldType? {
        switch function {
        case .now: .timestamp
        case .uppercase, .lowercase: .string
        case .count, .length, .sum, .average, .median, .standardDeviation, .modulus, .squareRoot,
            .logarithm, .naturalLogarithm, .exponential, .floor, .ceiling, .absolute, .truncate,
            .distance:
            .double
        default: nil
        }
    }

    private static func kind(of cast: RecordPredicate.CastType) -> FieldType? {
        switch cast {
        case .number: .double
        case .string: .string
        case .date: .timestamp
        case .data: .bytes
        case .uuid: .uuid
        case .objectID: .objectID
        default: nil
        }
    }
}
