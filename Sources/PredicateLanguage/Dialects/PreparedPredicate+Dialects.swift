public import RelayModel

extension PreparedPredicate {
    /// Creates a prepared predicate with a layout of its own.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` if a regular expression is refused.
    public init(
        _ predicate: RecordPredicate, engine: any RegularExpressionEngine
    ) throws(PredicateError) {
        var layout = FieldLayout()
        try self.init(predicate, layout: &layout, engine: engine)
    }

    /// Creates a prepared predicate for rows of a layout, to which it adds each field that it
    /// reads.
    ///
    /// - Throws: ``PredicateError`` of the stage `check` if a regular expression is refused.
    public init(
        _ predicate: RecordPredicate, layout: inout FieldLayout,
        engine: any RegularExpressionEngine
    ) throws(PredicateError) {
        try self.init(predicate, layout: &layout, .ofAllDialects(engine))
    }
}

extension RecordPredicate {
    /// Evaluates the predicate once on a record.
    ///
    /// Use ``PreparedPredicate`` to evaluate it more often.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields = [:], now: Timestamp? = nil,
        engine: any RegularExpressionEngine
    ) -> PredicateOutcome {
        do throws(PredicateError) {
            let prepared = try PreparedPredicate(self, engine: engine)
            return prepared.evaluate(on: fields, variables: variables, now: now)
        } catch {
            return .error(.badRegularExpression(error.reason))
        }
    }
}
