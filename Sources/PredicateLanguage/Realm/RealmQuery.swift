public import RelayModel

/// A query of the Realm Query Language: a predicate, and how its results are arranged.
public struct RealmQuery: Sendable, Hashable {
    /// Which records are found.
    public let predicate: RecordPredicate
    /// What is done with them, from left to right.
    public let suffixes: [Suffix]

    /// A step that arranges results.
    public enum Suffix: Sendable, Hashable {
        /// `SORT(path ASC, …)`: the records in that order; equal ones keep theirs.
        case sort([SortKey])
        /// `DISTINCT(path, …)`: the first record of each combination of values.
        case distinct([RecordPredicate.RecordPath])
        /// `LIMIT(n)`: the first n records.
        case limit(Int)
    }

    /// One criterion of a sort.
    public struct SortKey: Sendable, Hashable {
        /// The value to sort by.
        public var path: RecordPredicate.RecordPath
        /// Which end comes first.
        public var order: SortOrder
    }

    /// Which end of an order comes first.
    public enum SortOrder: Sendable, Hashable {
        /// The least value first.
        case ascending
        /// The greatest value first.
        case descending
    }

    /// Reads a query.
    ///
    /// An argument that is not among `arguments` stays a variable, if `arguments` is empty: the
    /// query can then be checked, and has no answer until the variable has a value.
    ///
    /// - Parameters:
    ///   - text: the query; 256 kB at most, nested 200 levels at most.
    ///   - arguments: the values of `$0`, `$1` …; those of `$K0` … must be key paths as text.
    /// - Throws: ``PredicateError`` of the stage `parse`, or `check` where an argument does not
    ///   fit.
    /// - Complexity: O(*n*) in the text's bytes.
    public init(parsing text: String, arguments: [FieldValue] = []) throws(PredicateError) {
        guard text.utf8.count <= Limits.maximumPredicateBytes else {
            throw PredicateError(
                .parse,
                "the query has \(text.utf8.count) bytes; \(Limits.maximumPredicateBytes) are "
                    + "allowed", expected: "\(Limits.maximumPredicateBytes) bytes at the most")
        }
        var parser = RQLParser(
            tokens: try RQLLexer.tokens(of: text), text: text, arguments: arguments)
        predicate = RecordPredicate(try parser.query())
        suffixes = try parser.suffixes()
        try parser.expectEnd()
    }
}

extension RecordPredicate {
    /// Reads a condition in the Realm Query Language.
    ///
    /// - Throws: ``PredicateError`` of the stage `parse`, or `check` for what a subscription cannot
    ///   have, such as `SORT`.
    public init(rql text: String, arguments: [FieldValue] = []) throws(PredicateError) {
        let query = try RealmQuery(parsing: text, arguments: arguments)
        guard query.suffixes.isEmpty else {
            throw PredicateError(
                .check, "SORT, DISTINCT and LIMIT have no meaning in a subscription",
                expected: "a query without suffixes",
                hint: "leave the suffix out and arrange the records where they are shown")
        }
        self = query.predicate
    }
}
