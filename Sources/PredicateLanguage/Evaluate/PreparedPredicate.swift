public import RelayModel

/// A predicate made ready to be evaluated many times: regular expressions are compiled, texts to be
/// searched for are folded, long lists are hashed.
///
/// It is immutable and may be used from any thread.
public struct PreparedPredicate: Sendable {
    /// The predicate that was prepared.
    public let predicate: RecordPredicate
    private let root: PreparedNode

    /// Prepares a predicate.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` if a regular expression is refused.
    public init(_ predicate: RecordPredicate) throws(PredicateError) {
        self.predicate = predicate
        root = try PreparedNode(predicate.root)
    }

    /// Evaluates the predicate on a record; runs until the outcome is known, from left to right.
    ///
    /// Variables are the values of `$name` by name, without the `$`; `now` is the value of `now()`.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        evaluate(onValue: .map(fields), variables: variables, now: now)
    }

    /// Evaluates the predicate on a bare value, which `SELF` then names.
    public func evaluate(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        var evaluation = Evaluation(record: value, variables: variables, now: now)
        return evaluation.outcome(of: root)
    }

    /// Evaluates the predicate and tells how it came to its outcome.
    public func trace(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> EvaluationTrace {
        var evaluation = Evaluation(record: value, variables: variables, now: now)
        evaluation.steps = []
        let outcome = evaluation.outcome(of: root)
        return EvaluationTrace(outcome: outcome, comparisons: evaluation.steps ?? [])
    }
}

extension RecordPredicate {
    /// Evaluates the predicate on a record, once; ``PreparedPredicate`` is for more often.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        do throws(PredicateError) {
            let prepared = try PreparedPredicate(self)
            return prepared.evaluate(on: fields, variables: variables, now: now)
        } catch {
            return .error(.badRegularExpression(error.reason))
        }
    }
}
