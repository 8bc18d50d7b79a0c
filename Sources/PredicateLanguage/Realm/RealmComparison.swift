/// A comparison as Realm judges it, with what can be made of its constants.
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
    /// What Realm's queries need, whose comparisons all follow Realm's rules.
    static let ofRealm = Preparation(
        foreign: { RealmComparison($0) }, engine: NoRegularExpressions())
}
