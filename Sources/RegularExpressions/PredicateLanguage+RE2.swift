public import PredicateLanguage
public import RelayModel

// The predicate language with RE2 as its engine for patterns, which is how the relay uses it.

extension PreparedPredicate {
    /// Prepares a predicate whose patterns RE2 runs.
    ///
    /// - Throws: `PredicateError` of the stage `check` if a regular expression is refused.
    public init(_ predicate: RecordPredicate) throws(PredicateError) {
        try self.init(predicate, engine: RE2Engine())
    }

    /// Prepares a predicate that was checked when it was saved.
    ///
    /// Its patterns are compiled when a text is first matched against them.
    ///
    /// - Throws: `PredicateError` of the stage `check` if anything other than a pattern is refused.
    public init(checked predicate: RecordPredicate) throws(PredicateError) {
        try self.init(predicate, engine: RE2Engine.ofCheckedConditions)
    }

    /// Prepares a predicate for rows of a layout, and adds a place for each field that it reads.
    ///
    /// - Throws: `PredicateError` of the stage `check` if a regular expression is refused.
    public init(
        _ predicate: RecordPredicate, layout: inout FieldLayout
    ) throws(PredicateError) {
        try self.init(predicate, layout: &layout, engine: RE2Engine())
    }
}

extension RecordPredicate {
    /// Evaluates the predicate on one record; use `PreparedPredicate` for repeated evaluation.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        evaluate(on: fields, variables: variables, now: now, engine: RE2Engine())
    }

    /// Checks what can be known without a record, including whether RE2 can run the patterns.
    ///
    /// - Throws: `PredicateError` of the stage `check` at the first fault.
    public func check(
        schema: RecordSchema? = nil, variables: Set<String> = []
    ) throws(PredicateError) {
        try check(schema: schema, variables: variables, engine: RE2Engine())
    }
}
