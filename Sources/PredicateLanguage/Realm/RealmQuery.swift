public import RelayModel

/// A query of the Realm Query Language: a predicate, and the arrangement of its results.
public struct RealmQuery: Sendable, Hashable {
    /// The condition for the records to find.
    public let predicate: RecordPredicate
    /// The steps that arrange the results, from left to right.
    public let suffixes: [Suffix]

    /// A step that arranges results.
    public enum Suffix: Sendable, Hashable {
        /// `SORT(path ASC, …)`: sorts the records. Equal records keep their order.
        case sort([SortKey])
        /// `DISTINCT(path, …)`: keeps the first record of each combination of values.
        case distinct([RecordPredicate.RecordPath])
        /// `LIMIT(n)`: keeps the first n records.
        case limit(Int)
    }

    /// One criterion of a sort.
    public struct SortKey: Sendable, Hashable {
        /// The path of the value to sort by.
        public var path: RecordPredicate.RecordPath
        /// The direction of the order.
        public var order: SortOrder
    }

    /// The direction of an order.
    public enum SortOrder: Sendable, Hashable {
        /// From the least value to the greatest.
        case ascending
        /// From the greatest value to the least.
        case descending
    }

    /// Creates a query from its text.
    ///
    /// If `arguments` is empty, placeholders become variables. The query can then be checked, but
    /// its evaluation has no outcome until the variables have values.
    ///
    /// - Parameters:
    ///   - text: the query, of at most 256 KB and 200 levels of nesting.
    ///   - arguments: the values of `$0`, `$1` …. The values of `$K0` … must be key paths as texts.
    /// - Throws: ``PredicateError`` of the stage `parse`, or `check` if an argument does not fit.
    /// - Complexity: O(*n*) in the number of bytes.
    public init(parsing text: String, arguments: [FieldValue] = []) throws(PredicateError) {
        guard text.utf8.count <= Limits.maximumPredicateBytes else {
            throw PredicateError(
                .parse,
                "the query has \(text.utf8.count) bytes; \(Limits.maximumPredicateBytes) are "
                    + "allowed", expected: "at most \(Limits.maximumPredicateBytes) bytes")
        }
        var parser = RQLParser(
            tokens: try RQLLexer.tokens(of: text), text: text, arguments: arguments)
        predicate = RecordPredicate(try parser.query())
        suffixes = try parser.suffixes()
        try parser.expectEnd()
    }
}

extension RecordPredicate {
    /// Creates a predicate from a condition in the Realm Query Language.
    ///
    /// - Throws: ``PredicateError`` of the stage `parse`, or `check` for what a subscription cannot
    ///   contain, such as `SORT`.
    public init(rql text: String, arguments: [FieldValue] = []) throws(PredicateError) {
        let query = try RealmQuery(parsing: text, arguments: arguments)
        guard query.suffixes.isEmpty else {
            throw PredicateError(
                .check, "SORT, DISTINCT and LIMIT have no meaning in a subscription",
                expected: "a query without suffixes",
                hint: "remove the suffix, and sort or limit the records where they are shown")
        }
        self = query.predicate
    }
}
