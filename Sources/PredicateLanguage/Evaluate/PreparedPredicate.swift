public import RelayModel

/// A predicate made ready to be evaluated many times: regular expressions are compiled, constants
/// are folded.
///
/// It is immutable and may be used from any thread.
public struct PreparedPredicate: Sendable {
    /// The predicate that was prepared.
    public let predicate: RecordPredicate

    /// Prepares a predicate.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` if a constant can never be used, such as a
    ///   broken regular expression.
    public init(_ predicate: RecordPredicate) throws(PredicateError) {
        self.predicate = predicate
    }

    /// Evaluates the predicate on a record.
    ///
    /// - Parameters:
    ///   - variables: the values of `$name`, without the `$`.
    ///   - now: the value of `now()`.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        .error(.noClock)
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
