public import RelayModel

/// A predicate made ready to be evaluated many times: regular expressions are compiled, texts to be
/// searched for are folded, lists are sorted, and the comparisons stand in a flat program.
///
/// It is immutable and may be used from any thread.
///
/// ```swift
/// let condition = try RecordPredicate(rql: #"title TEXT 'water' OR year > 1900"#)
/// let prepared = try PreparedPredicate(condition, engine: RE2Engine())
/// let years: [Int64] = [1872, 1916]
/// let outcomes = years.map { prepared.evaluate(on: ["year": .integer($0)]) }
/// #expect(outcomes == [.false, .true])
/// ```
public struct PreparedPredicate: Sendable {
    /// The predicate that was prepared.
    public let predicate: RecordPredicate
    private let root: PreparedNode
    /// The flat form; empty for a predicate with assignments, whose comparisons depend on each
    /// other, and for one whose evaluations are counted.
    private let program: PredicateProgram
    private let assigns: Bool
    /// What evaluations may take.
    public let weight: EvaluationWeight

    /// Prepares a predicate for rows of a layout, which gets a place for each field that its flat
    /// form reads.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` if a regular expression is refused.
    init(
        _ predicate: RecordPredicate, layout: inout FieldLayout, _ preparation: Preparation
    ) throws(PredicateError) {
        self.predicate = predicate
        let root = try PreparedNode(predicate.root, preparation)
        self.root = root
        let assigns = predicate.root.assigns
        let weight = EvaluationWeight(predicate.root)
        self.assigns = assigns
        self.weight = weight
        // A quarter of the room that a long one takes.
        program =
            assigns || weight.isMetered
            ? PredicateProgram(ProgramParts(), entry: ProgramStep.end.fails)
            : ProgramCompiler.compile(root, layout: &layout)
    }

    /// Evaluates the predicate on a record; runs until the outcome is known, from left to right.
    ///
    /// Variables are the values of `$name` by name, without the `$`; `now` is the value of `now()`.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields? = nil, now: Timestamp? = nil
    ) -> PredicateOutcome {
        if assigns || weight.isMetered {
            return reference(onValue: .map(fields), variables: variables ?? [:], now: now)
        }
        return program.outcome(on: NamedFields(fields: fields), variables: variables, now: now)
    }

    /// Evaluates the predicate on a row of the layout that it was prepared with.
    public func evaluate(
        on row: FieldRow, variables: RecordFields? = nil, now: Timestamp? = nil
    ) -> PredicateOutcome {
        if assigns || weight.isMetered {
            return reference(onValue: .map(row.fields), variables: variables ?? [:], now: now)
        }
        return program.outcome(on: row, variables: variables, now: now)
    }

    /// Evaluates the predicate on a bare value, which `SELF` then names.
    public func evaluate(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        if case .map(let fields) = value {
            return evaluate(on: fields, variables: variables, now: now)
        }
        return reference(onValue: value, variables: variables, now: now)
    }

    /// Evaluates the predicate by the slow evaluator, which is the truth that every faster way is
    /// tested against.
    public func reference(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        var steps = 0
        return counted(onValue: value, variables: variables, now: now, steps: &steps)
    }

    /// Evaluates the predicate on a record, and adds to `steps` what it took, for whoever bounds
    /// the sum over many evaluations.
    ///
    /// Of a predicate that is not ``weight``'s ``EvaluationWeight/isMetered`` it is an estimate
    /// that grows with the record.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields? = nil, now: Timestamp? = nil,
        steps: inout Int
    ) -> PredicateOutcome {
        if weight.isMetered {
            return counted(
                onValue: .map(fields), variables: variables ?? [:], now: now, steps: &steps)
        }
        let reading = weight.passes > 0 ? EvaluationWeight.reading(of: fields) : 0
        steps += weight.steps(reading: reading)
        return evaluate(on: fields, variables: variables, now: now)
    }

    private func counted(
        onValue value: FieldValue, variables: RecordFields, now: Timestamp?, steps: inout Int
    ) -> PredicateOutcome {
        let meter = weight.isMetered ? StepMeter() : nil
        var evaluation = Evaluation(
            record: value, variables: variables, now: now, meter: meter)
        let outcome = evaluation.outcome(of: root)
        if let meter { steps += min(meter.taken, Limits.maximumEvaluationSteps) }
        return outcome
    }

    /// Evaluates the predicate and tells how it came to its outcome.
    public func trace(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> EvaluationTrace {
        let meter = weight.isMetered ? StepMeter() : nil
        var evaluation = Evaluation(record: value, variables: variables, now: now, meter: meter)
        evaluation.steps = []
        let outcome = evaluation.outcome(of: root)
        return EvaluationTrace(outcome: outcome, comparisons: evaluation.steps ?? [])
    }
}
