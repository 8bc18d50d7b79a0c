import RelayModel

/// The outcome of evaluating a predicate on a record.
public enum PredicateOutcome: Sendable, Hashable {
    /// The record satisfies it.
    case `true`
    /// The record does not satisfy it.
    case `false`
    /// The evaluation has an error. The change then does not fire the subscription, not even if the
    /// failed part is under NOT.
    case error(EvaluationError)
}

/// The reason why the evaluation of a predicate has no outcome.
///
/// Its text is created only when it is read, so an error is cheap to throw.
public enum EvaluationError: Error, Sendable, Hashable {
    /// Values cannot be ordered: they are of different kinds, or of a kind without an order.
    case unordered(left: String, right: String)
    /// An operator or function is not defined for the kind of a value.
    case wrongKind(operation: String, found: String)
    /// An integer was divided by zero.
    case divisionByZero
    /// The result does not fit into 64 bits.
    case overflow
    /// An index is outside its list.
    case indexOutOfRange(Int64, count: Int)
    /// ANY, ALL or NONE was applied to a value that is not a collection.
    case quantifierOnScalar(found: String)
    /// A variable has no value.
    case unboundVariable(String)
    /// The bounds of BETWEEN are not a list of two.
    case badBounds
    /// A regular expression that came from the record cannot be used.
    case badRegularExpression(String)
    /// A value cannot be cast.
    case badCast(found: String, type: String)
    /// `now()` was evaluated, but the caller gave no time.
    case noClock
    /// The evaluation takes more than `Limits.maximumEvaluationSteps` steps.
    case budgetExceeded

    /// The reason, as a sentence for people.
    public var reason: String {
        switch self {
        case .unordered(let left, let right): "\(left) cannot be ordered against \(right)"
        case .wrongKind(let operation, let found): "\(operation) is not defined for \(found)"
        case .divisionByZero: "division by zero"
        case .overflow: "the result does not fit in 64 bits"
        case .indexOutOfRange(let index, let count):
            "index \(index) is outside a list of \(count)"
        case .quantifierOnScalar(let found): "a quantifier needs a collection, found \(found)"
        case .unboundVariable(let name): "the variable $\(name) has no value"
        case .badBounds: "BETWEEN needs a list of two bounds"
        case .badRegularExpression(let reason): "the regular expression is refused: \(reason)"
        case .badCast(let found, let type): "\(found) cannot be cast to \(type)"
        case .noClock: "now() needs the time of the evaluation"
        case .budgetExceeded:
            "the evaluation takes more than \(Limits.maximumEvaluationSteps) steps"
        }
    }
}
