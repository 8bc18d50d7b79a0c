/// A comparison under Realm's rules, with everything that can be computed from its constants.
final class RealmComparison: ForeignComparison {
    private let source: RecordPredicate.Comparison
    private let test: RealmEvaluator.Test

    init(_ source: RecordPredicate.Comparison) {
        self.source = source
        test = RealmEvaluator.Test(source)
    }

    func judge(in evaluation: Evaluation) throws(EvaluationError) -> Judgement {
        let evaluator = RealmEvaluator(
            record: evaluation.record, variables: evaluation.variables, now: evaluation.now,
            meter: evaluation.meter)
        return try evaluator.judge(source, test: test)
    }
}

extension Preparation {
    /// The preparation for Realm's queries, whose comparisons all follow Realm's rules.
    static let ofRealm = Preparation(
        foreign: { RealmComparison($0) }, engine: NoRegularExpressions())
}
