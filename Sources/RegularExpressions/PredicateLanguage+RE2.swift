public import PredicateLanguage
public import RelayModel

// The language as the relay speaks it: patterns are run by RE2.

extension PreparedPredicate {
    /// Prepares a predicate, whose patterns RE2 will run.
    ///
    /// - Throws: `PredicateError` of the stage `check` if a regular expression is refused.
    public init(_ predicate: RecordPredicate) throws(PredicateError) {
        try self.init(predicate, engine: RE2Engine())
    }

    /// Prepares a predicate that was checked when it was saved: its patterns are compiled when a
    /// text is first matched against them.
    ///
    /// - Throws: `PredicateError` of the stage `check` if something else of it is refused.
    public init(checked predicate: RecordPredicate) throws(PredicateError) {
        try self.init(predicate, engine: RE2Engine.ofCheckedConditions)
    }

    /// Prepares a predicate for rows of a layout, which gets a place for each field it reads.
    ///
    /// - Throws: `PredicateError` of the stage `check` if a regular expression is refused.
    public init(
        _ predicate: RecordPredicate, layout: inout FieldLayout
    ) throws(PredicateError) {
        try self.init(predicate, layout: &layout, engine: RE2Engine())
    }
}

extension RecordPredicate {
    /// Evaluates the predicate on a record, once; `PreparedPredicate` is for more often.
    public func evaluate(
        on fields: RecordFields, variables: RecordFields = [:], now: Timestamp? = nil
    ) -> PredicateOutcome {
        evaluate(on: fields, variables: variables, now: now, engine: RE2Engine())
    }

    /// Checks what can be known before any record is seen, patterns by what RE2 can run.
    ///
    /// - Throws: `PredicateError` of the stage `check` at the first fault.
    public func check(
        schema: RecordSchema? = nil, variables: Set<String> = []
    ) throws(PredicateError) {
        try check(schema: schema, variables: variables, engine: RE2Engine())
    }
}
