public import RelayModel

/// A predicate that is prepared for many evaluations: regular expressions are compiled, texts to
/// search for are folded, lists are sorted, and the comparisons are compiled to a flat program.
///
/// It is immutable, and any thread may use it.
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
    /// The flat program.
    ///
    /// It is empty for a predicate with assignments, whose comparisons depend on each other, and
    /// for a predicate whose evaluations are metered.
    private let program: PredicateProgram
    private let assigns: Bool
    /// The estimated cost of an evaluation.
    public let weight: EvaluationWeight

    /// Creates a prepared predicate for rows of a layout, to which it adds each field that its flat
    /// program reads.
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
        // An unused program would take a quarter of the memory of a long predicate.
        program =
            assigns || weight.isMetered
            ? PredicateProgram(ProgramParts(), entry: ProgramStep.end.fails)
            : ProgramCompiler.compile(root, layout: &layout)
    }

    /// Evaluates the predicate on a record, from left to right until the outcome is known.
    ///
    /// `variables` are the values of `$name`, by name without the `$`. `now` is the value of
    /// `now()`.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields? = nil, now: Timestamp? = nil
    ) -> PredicateOutcome {
        if assigns || weight.isMetered {
            return reference(onValue: .map(fields), variables: variables ?? [:], now: now)
        }
        return program.outcome(on: NamedFields(fields: fields), variables: variables, now: now)
    }

    /// Evaluates the predicate on a row of the layout with which it was prepared.
    public func evaluate(
        on row: FieldRow, variables: RecordFields? = nil, now: Timestamp? = nil
    ) -> PredicateOutcome {
        if assigns || weight.isMetered {
            return reference(onValue: .map(row.fields), variables: variables ?? [:], now: now)
        }
        return program.outcome(on: row, variables: variables, now: now)
    }

    /// Evaluates the predicate on a single value, which `SELF` then names.
    public func evaluate(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        if case .map(let fields) = value {
            return evaluate(on: fields, variables: variables, now: now)
        }
        return reference(onValue: value, variables: variables, now: now)
    }

    /// Evaluates the predicate with the slow evaluator.
    ///
    /// It defines the outcome, and all faster ways are tested against it.
    public func reference(
        onValue value: FieldValue, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        var steps = 0
        return counted(onValue: value, variables: variables, now: now, steps: &steps)
    }

    /// Evaluates the predicate on a record, and adds the number of steps to `steps`, for callers
    /// that bound the sum over many evaluations.
    ///
    /// If the predicate's ``weight`` is not ``EvaluationWeight/isMetered``, the number is an
    /// estimate that grows with the record.
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

    /// Evaluates the predicate, and returns the comparisons that led to the outcome.
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
