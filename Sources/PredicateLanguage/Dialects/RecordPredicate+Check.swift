extension RecordPredicate {
    /// Checks what can be checked without a record: constants that cannot be used, patterns,
    /// variables without a value and, if a schema is given, fields and types.
    ///
    /// - Parameters:
    ///   - schema: the schema of the record type. Without one, fields and types are not checked.
    ///   - variables: the names of variables that will have values.
    ///   - engine: the engine that will run the patterns of MATCHES.
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
