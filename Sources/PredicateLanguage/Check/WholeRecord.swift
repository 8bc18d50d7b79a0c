import RelayModel

/// The record itself, which is a dictionary: whoever compares it with a value, as Core Data's
/// objects are compared with others, means its name.
enum WholeRecord {
    /// Whether a comparison holds the record against what no dictionary is.
    static func isMistaken(_ comparison: RecordPredicate.Comparison) -> Bool {
        guard comparison.rules == .apple, comparison.quantifier == nil,
            comparison.rightQuantifier == nil
        else { return false }
        let (left, right) = (comparison.left, comparison.right)
        switch comparison.comparator {
        case .equal:
            return left == .record && isNoDictionary(right.literal)
                || right == .record && isNoDictionary(left.literal)
        case .in: return left == .record && isNoDictionary(right.literal)
        case .beginsWith, .endsWith, .like, .matches:
            return left == .record && right.literal != nil
        default: return false
        }
    }

    /// Whether it is a constant that neither is a dictionary nor has one.
    private static func isNoDictionary(_ value: FieldValue?) -> Bool {
        switch value {
        case nil, .map?: false
        case .list(let values)?: values.allSatisfy { isNoDictionary($0) }
        case .set(let values)?: values.allSatisfy { isNoDictionary($0) }
        default: true
        }
    }
}
