import RelayModel

/// Finds comparisons that ask for a record without a name, as `recordName == ''` does.
///
/// Every record has a name, and the relay always knows it.
enum NamelessRecord {
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    /// Returns whether a comparison asks for a name, or an ID, that is nil or empty.
    static func isAskedFor(_ comparison: Comparison) -> Bool {
        guard comparison.rules != .firebase, comparison.quantifier == nil,
            comparison.rightQuantifier == nil
        else { return false }
        let (left, right) = (comparison.left, comparison.right)
        switch comparison.comparator {
        case .equal:
            return isName(left) && isNothing(right.literal)
                || isName(right) && isNothing(left.literal)
        case .in:
            guard isName(left), case .list(let values)? = right.literal else { return false }
            return values.allSatisfy { isNothing($0) }
        default: return false
        }
    }

    private static func isName(_ side: Expression) -> Bool {
        guard case .path(let path) = side, let name = path.fieldName else { return false }
        switch SystemField(named: name) {
        case .recordID?, .recordName?: return true
        default: return false
        }
    }

    private static func isNothing(_ value: FieldValue?) -> Bool {
        switch value {
        case .null?, .string("")?: true
        default: false
        }
    }
}
