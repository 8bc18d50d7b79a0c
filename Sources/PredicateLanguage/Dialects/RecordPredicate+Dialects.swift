public import RelayModel

extension RecordPredicate {
    /// Parses a condition in any dialect.
    ///
    /// The source is a string for the text dialects, and an object or array for the others.
    /// Arguments are the values of `%@` and `$0`; the JSON dialects take none. For Minapp's `where`
    /// the schema determines which texts are dates and which fields exist. For the other dialects
    /// ``check(schema:variables:engine:)`` checks the condition against a schema.
    ///
    /// - Throws: ``PredicateError`` of the stage `parse`, or `check` for what a dialect refuses.
    public static func parse(
        _ source: JSONValue, dialect: PredicateDialect, arguments: [FieldValue] = [],
        schema: RecordSchema? = nil
    ) throws(PredicateError) -> RecordPredicate {
        do throws(PredicateError) {
            return try read(source, dialect: dialect, arguments: arguments, schema: schema)
        } catch {
            throw error.completed(in: source)
        }
    }

    private static func read(
        _ source: JSONValue, dialect: PredicateDialect, arguments: [FieldValue],
        schema: RecordSchema?
    ) throws(PredicateError) -> RecordPredicate {
        guard arguments.isEmpty || dialect.isText else {
            throw PredicateError(
                .parse, "the dialect \(dialect.rawValue) takes no arguments",
                expected: "no arguments")
        }
        switch dialect {
        case .nspredicate:
            return try RecordPredicate(format: try text(source), arguments: arguments)
        case .ckquery:
            let predicate = try RecordPredicate(format: try text(source), arguments: arguments)
            try predicate.checkCloudKit(schema: schema)
            return predicate
        case .rql: return try RecordPredicate(rql: try text(source), arguments: arguments)
        case .filterBy: return try RecordPredicate(filterBy: source)
        case .where: return try RecordPredicate(where: source, schema: schema)
        }
    }

    private static func text(_ source: JSONValue) throws(PredicateError) -> String {
        guard case .string(let text) = source else {
            throw PredicateError(
                .parse, "a text is expected", found: source.kind, expected: "a string")
        }
        return text
    }
}
