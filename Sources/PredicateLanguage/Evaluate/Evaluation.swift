import RelayModel

/// One evaluation of a predicate on one record.
struct Evaluation {
    /// The record, or the single value, that `SELF` names.
    let record: FieldValue
    /// The values of variables.
    ///
    /// SUBQUERY binds its own temporarily.
    var variables: RecordFields
    /// The value of `now()`.
    let now: Timestamp?
    /// The comparisons that have been evaluated, if a trace is wanted.
    var steps: [ComparisonTrace]?
    /// The number of comparisons around the current one.
    private var depth = 0
    /// Counts the steps of a condition that could take too many.
    let meter: StepMeter?

    init(
        record: FieldValue, variables: RecordFields, now: Timestamp?, meter: StepMeter? = nil
    ) {
        self.record = record
        self.variables = variables
        self.now = now
        self.meter = meter
    }

    mutating func outcome(of node: PreparedNode) -> PredicateOutcome {
        do throws(EvaluationError) {
            return try holds(node) ? .true : .false
        } catch {
            return .error(error)
        }
    }

    /// Returns whether `node` holds.
    ///
    /// An error in any part that is evaluated is an error of the whole predicate.
    mutating func holds(_ node: PreparedNode) throws(EvaluationError) -> Bool {
        switch node {
        case .constant(let isTrue): return isTrue
        case .comparison(let comparison):
            return steps == nil ? try holds(comparison) : try holdsTraced(comparison)
        case .and(let nodes):
            for node in nodes where try !holds(node) { return false }
            return true
        case .or(let nodes):
            for node in nodes where try holds(node) { return true }
            return false
        case .not(let inner): return try !holds(inner)
        }
    }

    /// Returns whether a comparison holds.
    mutating func holds(
        _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        if let foreign = comparison.foreign { return try foreign.judge(in: self).holds }
        let left = try value(of: comparison.left)
        let right = try value(of: comparison.right)
        return try compare(left, right, as: comparison)
    }

    private mutating func holdsTraced(
        _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        var step = ComparisonTrace(comparison.source)
        step.isNested = depth > 0
        depth += 1
        defer { depth -= 1 }
        let index = steps?.count ?? 0
        steps?.append(step)
        do throws(EvaluationError) {
            if let foreign = comparison.foreign {
                let judged = try foreign.judge(in: self)
                step.left = judged.left
                step.right = judged.right
                step.outcome = judged.holds ? .true : .false
                steps?[index] = step
                return judged.holds
            }
            let left = try value(of: comparison.left)
            step.left = left
            let right = try value(of: comparison.right)
            step.right = right
            let holds = try compare(left, right, as: comparison)
            step.outcome = holds ? .true : .false
            steps?[index] = step
            return holds
        } catch {
            step.outcome = .error(error)
            steps?[index] = step
            throw error
        }
    }
}

extension Evaluation {
    /// Compares two values by NSPredicate's rules.
    func compare(
        _ left: FieldValue, _ right: FieldValue, as comparison: PreparedComparison
    ) throws(EvaluationError) -> Bool {
        try meter?.charge(left, right, as: comparison)
        return try AppleRules.compare(left, right, as: comparison)
    }
}
