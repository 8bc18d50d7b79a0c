import RelayModel

/// Judges the comparisons that follow other rules than Apple's.
enum ForeignRules {
    /// Whether a comparison holds for a record, and what its two sides were.
    ///
    /// Returns `nil` for a comparison under Apple's rules.
    static func judge(
        _ comparison: PreparedComparison, record: FieldValue, variables: RecordFields,
        now: Timestamp?
    ) throws(EvaluationError) -> (holds: Bool, left: FieldValue, right: FieldValue)? {
        let source = comparison.source
        switch source.rules {
        case .apple: return nil
        case .realm:
            let evaluator = RealmEvaluator(record: record, variables: variables, now: now)
            return try evaluator.judge(source, test: comparison.realm)
        case .minapp: return try MinappEvaluator(record: record, now: now).judge(source)
        case .firebase: return try FirebaseEvaluator(record: record, now: now).judge(source)
        }
    }
}
