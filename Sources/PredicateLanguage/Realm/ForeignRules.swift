import RelayModel

/// Judges the comparisons that follow other rules than Apple's.
enum ForeignRules {
    /// Whether a comparison holds for a record, and what its two sides were.
    ///
    /// Returns `nil` for a comparison under Apple's rules.
    static func judge(
        _ comparison: RecordPredicate.Comparison, record: FieldValue, variables: RecordFields
    ) throws(EvaluationError) -> (holds: Bool, left: FieldValue, right: FieldValue)? {
        switch comparison.rules {
        case .apple: nil
        case .realm: try RealmEvaluator(record: record, variables: variables).judge(comparison)
        case .minapp: MinappEvaluator(record: record).judge(comparison)
        case .firebase: FirebaseEvaluator(record: record).judge(comparison)
        }
    }
}
