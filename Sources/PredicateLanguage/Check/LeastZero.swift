import RelayModel

/// Expressions that are never negative: a distance, a number of elements, a length.
enum LeastZero {
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    /// Returns whether a comparison requires such an expression to be less than it can be.
    ///
    /// For example, nothing lies within a circle whose radius is zero.
    static func isAskedForLess(_ comparison: Comparison) -> Bool {
        guard comparison.quantifier == nil, comparison.rightQuantifier == nil else { return false }
        if isOne(comparison.left, comparison.rules), let value = comparison.right.literal {
            switch comparison.comparator {
            case .less: return isBelow(value, orAt: true)
            case .lessOrEqual, .equal: return isBelow(value, orAt: false)
            case .between:
                guard case .list(let bounds) = value, bounds.count == 2 else { return false }
                return isBelow(bounds[1], orAt: false)
            default: return false
            }
        }
        guard isOne(comparison.right, comparison.rules), let value = comparison.left.literal else {
            return false
        }
        switch comparison.comparator {
        case .greater: return isBelow(value, orAt: true)
        case .greaterOrEqual, .equal: return isBelow(value, orAt: false)
        default: return false
        }
    }

    private static func isOne(_ side: Expression, _ rules: RecordPredicate.RuleSet) -> Bool {
        switch (side, rules) {
        case (.call(.distance, _), .apple), (.call(.length, _), .apple),
            (.call(.count, _), .apple):
            return true
        case (.path(let path), .apple), (.path(let path), .realm), (.member(_, let path), .apple),
            (.member(_, let path), .realm):
            return path.components.last == .collection(.count) || path.components.last == .size
        default: return false
        }
    }

    private static func isBelow(_ value: FieldValue, orAt isIncluded: Bool) -> Bool {
        guard let number = Number(value)?.double else { return false }
        return number < 0 || isIncluded && number == 0
    }
}
