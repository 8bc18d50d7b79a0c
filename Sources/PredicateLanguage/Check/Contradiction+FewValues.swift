import RelayModel

// Sides that are an error, or have one of a few values, whatever the record holds: an element
// before the first one, and a division by zero.

extension Contradiction {
    /// Returns whether one side is an error for every record, or none of the few values that it can
    /// have satisfies the comparison.
    func isOfFewValues(_ comparison: Comparison) -> Bool {
        guard comparison.quantifier == nil, comparison.rightQuantifier == nil,
            comparison.comparator != .matches
        else { return false }
        switch comparison.rules {
        case .apple: break
        case .realm:
            // Realm gives nil meanings of its own.
            let sides = [comparison.left.literal, comparison.right.literal]
            guard comparison.comparator == .equal, !sides.contains(where: { $0?.isNull == true })
            else { return false }
        case .firebase, .minapp: return false
        }
        let left = fewValues(of: comparison.left, comparison.rules)
        let right = fewValues(of: comparison.right, comparison.rules)
        if left?.isEmpty == true || right?.isEmpty == true { return true }
        guard left != nil || right != nil,
            let firsts = left ?? comparison.left.literal.map({ [$0] }),
            let seconds = right ?? comparison.right.literal.map({ [$0] })
        else { return false }
        return !firsts.contains { first in
            seconds.contains { holds(comparison, first, $0) }
        }
    }

    /// Returns whether a comparison has a side that is an error for every record.
    ///
    /// Its negation is an error too.
    func isError(_ node: Node) -> Bool {
        guard case .comparison(let comparison) = node, comparison.rules == .apple,
            comparison.quantifier == nil
        else { return false }
        return fewValues(of: comparison.left, .apple)?.isEmpty == true
            || fewValues(of: comparison.right, .apple)?.isEmpty == true
    }

    /// Returns the values that a side can have if it is not an error, or `nil` if they are not
    /// known.
    ///
    /// An empty list means that the side is always an error.
    private func fewValues(
        of side: Expression, _ rules: RecordPredicate.RuleSet
    ) -> [FieldValue]? {
        switch side {
        case .path where Self.isBeforeFirst(side): return [.null]
        case .arithmetic(.divide, let dividend, let divisor) where Self.isByZero(side):
            let fractions: [FieldValue] = [
                .double(.infinity), .double(-.infinity), .double(.nan),
            ]
            if rules == .realm { return fractions + [.null, .integer(.max), .integer(.min)] }
            // A division of integers by zero is an error, as is a division of a value that is not a
            // number.
            guard case .integer? = divisor.literal else { return fractions }
            let isWhole = kind(of: dividend) == .integer || kind(of: dividend) == .boolean
            return isWhole ? [] : fractions
        default: return nil
        }
    }

    /// Returns whether a side is an element before the first one.
    ///
    /// Such an element of nil is nil; of any other value it is an error.
    static func isBeforeFirst(_ side: Expression) -> Bool {
        guard case .path(let path) = side else { return false }
        var isFound = false
        for component in path.components {
            switch component {
            case .member: continue
            case .element(let index):
                guard let value = index.literal, let number = FieldWish.number(value) else {
                    return false
                }
                isFound = isFound || number < 0
            default: return false
            }
        }
        return isFound
    }

    /// Returns whether a side is a division by a constant zero.
    static func isByZero(_ side: Expression) -> Bool {
        guard case .arithmetic(.divide, _, let divisor) = side, let value = divisor.literal else {
            return false
        }
        return FieldWish.number(value) == 0
    }

    /// Returns whether a comparison of two constants holds.
    ///
    /// One that cannot be judged counts as holding.
    private func holds(
        _ comparison: Comparison, _ left: FieldValue, _ right: FieldValue
    ) -> Bool {
        var constant = comparison
        constant.left = .constant(left)
        constant.right = .constant(right)
        guard let part = try? PreparedNode(.comparison(constant), preparation) else { return true }
        var evaluation = Evaluation(record: .map([:]), variables: [:], now: nil)
        return evaluation.outcome(of: part) == .true
    }
}
