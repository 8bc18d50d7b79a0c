import RelayModel

/// What a predicate is of a record.
public enum PredicateOutcome: Sendable, Hashable {
    /// The record satisfies it.
    case `true`
    /// The record does not.
    case `false`
    /// The predicate has no answer for the record, which then does not fire, not even under NOT.
    case error(EvaluationError)
}

/// Why a predicate has no answer for a record.
///
/// Making one allocates nothing; its text is made when asked for.
public enum EvaluationError: Error, Sendable, Hashable {
    /// Values of different or unordered kinds were ordered.
    case unordered(left: String, right: String)
    /// An operator or function got a value of a kind that it has no use for.
    case wrongKind(operation: String, found: String)
    /// Division of integers by zero.
    case divisionByZero
    /// The result does not fit 64 bits.
    case overflow
    /// An index lies outside its list.
    case indexOutOfRange(Int64, count: Int)
    /// ANY, ALL or NONE stood before something that is not a collection.
    case quantifierOnScalar(found: String)
    /// A variable has no value.
    case unboundVariable(String)
    /// The bounds of BETWEEN are not a list of two.
    case badBounds
    /// A regular expression that came from the record cannot be used.
    case badRegularExpression(String)
    /// A value cannot be cast.
    case badCast(found: String, type: String)
    /// `now()` was evaluated without a clock's reading.
    case noClock
    /// The evaluation takes more than `Limits.maximumEvaluationSteps` steps.
    case budgetExceeded

    /// What is wrong, as a sentence for people.
    public var reason: String {
        switch self {
        case .unordered(let left, let right): "\(left) cannot be ordered against \(right)"
        case .wrongKind(let operation, let found): "\(operation) is not defined for \(found)"
        case .divisionByZero: "division by zero"
        case .overflow: "the result does not fit 64 bits"
        case .indexOutOfRange(let index, let count):
            "index \(index) is outside a list of \(count)"
        case .quantifierOnScalar(let found): "a quantifier needs a collection, found \(found)"
        case .unboundVariable(let name): "the variable $\(name) has no value"
        case .badBounds: "BETWEEN needs a list of two bounds"
        case .badRegularExpression(let reason): "the regular expression is refused: \(reason)"
        case .badCast(let found, let type): "\(found) cannot be cast to \(type)"
        case .noClock: "now() needs the moment of the evaluation"
        case .budgetExceeded:
            "the evaluation takes more than \(Limits.maximumEvaluationSteps) steps"
        }
    }
}
