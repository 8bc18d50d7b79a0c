import RelayModel

/// Finds comparisons of the record itself with a value that is not a dictionary.
///
/// The record is a dictionary. An author who compares it with a value, as one compares Core Data
/// objects, means its name.
enum WholeRecord {
    /// Returns whether a comparison compares the record with a value that no dictionary equals.
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

    /// Returns whether `value` is a constant that neither is a dictionary nor contains one.
    private static func isNoDictionary(_ value: FieldValue?) -> Bool {
        switch value {
        case nil, .map?: false
        case .list(let values)?: values.allSatisfy { isNoDictionary($0) }
        case .set(let values)?: values.allSatisfy { isNoDictionary($0) }
        default: true
        }
    }
}
