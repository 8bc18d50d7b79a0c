extension RecordPredicate {
    /// Checks what can be known before any record is seen: constants that can never be used,
    /// patterns, variables without a value, and, with a schema, fields and kinds.
    ///
    /// - Parameters:
    ///   - schema: what is known of the record type; `nil` checks constants only.
    ///   - variables: the names of variables that will have values.
    ///   - engine: what will run the patterns of MATCHES.
    /// - Throws: ``PredicateError`` of the stage `check` at the first fault.
    public func check(
        schema: RecordSchema? = nil, variables: Set<String> = [],
        engine: any RegularExpressionEngine
    ) throws(PredicateError) {
        var check = PredicateCheck(
            schema: schema, variables: variables, preparation: .ofAllDialects(engine)
        ) { comparison, schema throws(PredicateError) in
            guard comparison.rules == .realm else { return false }
            try RealmSchemaCheck(schema: schema).check(comparison, [:])
            return true
        }
        try check.check(self)
        for comparison in comparisons where comparison.rules == .realm {
            try RealmConstants.check(comparison)
        }
    }
}
