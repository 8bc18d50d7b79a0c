import RelayModel

/// Judges the comparisons that follow other rules than Apple's.
enum ForeignRules {
    /// Whether a comparison holds for a record, and what its two sides were.
    ///
    /// Returns `nil` for a comparison under Apple's rules.
    static func judge(
        _ comparison: PreparedComparison, record: FieldValue, variables: RecordFields,
        now: Timestamp?, meter: StepMeter?
    ) throws(EvaluationError) -> (holds: Bool, left: FieldValue, right: FieldValue)? {
        let source = comparison.source
        switch source.rules {
        case .apple: return nil
        case .realm:
            let evaluator = RealmEvaluator(
                record: record, variables: variables, now: now, meter: meter)
            return try evaluator.judge(source, test: comparison.realm)
        case .minapp:
            let judged = try MinappEvaluator(record: record, now: now).judge(source)
            try charge(judged, meter)
            return judged
        case .firebase:
            let judged = try FirebaseEvaluator(record: record, now: now).judge(source)
            try charge(judged, meter)
            return judged
        }
    }

    /// These rules read each side once, and have no loops in loops: counting afterwards will do.
    private static func charge(
        _ judged: (holds: Bool, left: FieldValue, right: FieldValue), _ meter: StepMeter?
    ) throws(EvaluationError) {
        guard let meter else { return }
        let left = try meter.extent(of: judged.left)
        let right = try meter.extent(of: judged.right)
        // A list of the record is compared with a constant, element by element.
        try meter.charge(StepMeter.comparison + left.reading + left.collections * right.reading)
    }
}
