public import RelayModel

/// An ordered query as in Firebase and Wilddog.
///
/// ``predicate`` is the condition that a child lies within the bounds. ``window(of:)`` also orders
/// children and applies the limit.
public struct FirebaseQuery: Sendable, Hashable {
    /// What children are ordered by.
    ///
    /// Children with equal values are ordered by key.
    public enum Ordering: Sendable, Hashable {
        /// The value at a path inside the child.
        case child([String])
        /// The key.
        case key
        /// The child's own value.
        case value
        /// The priority.
        case priority
    }

    /// One end of a query's range.
    public struct Bound: Sendable, Hashable {
        /// The value at the bound.
        public var value: FieldValue
        /// The key at the bound, among the children with that value.
        public var key: String?
        /// Whether children at the bound belong to the range.
        public var isIncluded: Bool
    }

    /// The maximum number of children, and the end from which they are counted.
    public enum Limit: Sendable, Hashable {
        /// The given number of children from the start of the range.
        case first(Int)
        /// The given number of children from the end of the range.
        case last(Int)
    }

    /// The kinds of values in a range.
    public enum Kinds: Sendable, Hashable {
        /// All values that the order puts into the range: `endAt(5)` includes booleans and nil
        /// (Firebase).
        case ordered
        /// Only values of the bound's kind (Wilddog).
        case sameAsBound
    }

    /// What children are ordered by.
    ///
    /// `nil` means the priority.
    public internal(set) var ordering: Ordering?
    /// The lower bound.
    public internal(set) var start: Bound?
    /// The upper bound.
    public internal(set) var end: Bound?
    /// The maximum number of children.
    public internal(set) var limit: Limit?
    /// The kinds of values in the query's range.
    public let kinds: Kinds

    /// Creates a query for all children, ordered by priority.
    public init(kinds: Kinds = .ordered) {
        self.kinds = kinds
    }

    /// Returns this query, ordered by `ordering`.
    ///
    /// - Throws: ``PredicateError`` if the query already has an ordering, or its bounds do not fit
    ///   the ordering.
    public func ordered(by ordering: Ordering) throws(PredicateError) -> Self {
        guard self.ordering == nil else {
            throw Self.failure("the query already has an ordering")
        }
        var copy = self
        copy.ordering = ordering
        return try copy.checked()
    }

    /// Returns this query, ordered by the value at `path`, whose names are separated by `/`.
    ///
    /// - Throws: ``PredicateError`` if the path is empty, is one of Firebase's own names, or
    ///   contains a name that Firebase does not allow, or for the reasons of `ordered(by:)`.
    public func ordered(byChild path: String) throws(PredicateError) -> Self {
        if ["$key", "$value", "$priority"].contains(path) {
            throw Self.failure("\(path) is not a child path; it has an ordering of its own")
        }
        // By scalars: a slash and the mark after it would be one letter.
        let names = path.unicodeScalars.split(separator: "/").map { String($0) }
        let isValid = names.allSatisfy { !$0.utf8.contains { ".#$[]".utf8.contains($0) } }
        guard !names.isEmpty, isValid else {
            throw Self.failure("a child path must be names without . # $ [ ], separated by slashes")
        }
        return try ordered(by: .child(names))
    }

    /// Returns this query with a lower bound at `value`, which is included or not.
    ///
    /// - Throws: ``PredicateError`` if there already is a lower bound, or this one does not fit.
    public func starting(
        at value: FieldValue, key: String? = nil, isIncluded: Bool = true
    ) throws(PredicateError) -> Self {
        guard start == nil else { throw Self.failure("the query already has a lower bound") }
        var copy = self
        copy.start = Bound(value: value, key: key, isIncluded: isIncluded)
        return try copy.checked()
    }

    /// Returns this query with an upper bound at `value`, which is included or not.
    ///
    /// - Throws: ``PredicateError`` if there already is an upper bound, or this one does not fit.
    public func ending(
        at value: FieldValue, key: String? = nil, isIncluded: Bool = true
    ) throws(PredicateError) -> Self {
        guard end == nil else { throw Self.failure("the query already has an upper bound") }
        var copy = self
        copy.end = Bound(value: value, key: key, isIncluded: isIncluded)
        return try copy.checked()
    }

    /// Returns this query for children at `value` only.
    ///
    /// - Throws: ``PredicateError`` if there already is a bound, or this one does not fit.
    public func equal(
        to value: FieldValue, key: String? = nil
    ) throws(PredicateError) -> Self {
        try starting(at: value, key: key).ending(at: value, key: key)
    }

    /// Returns this query with a limit.
    ///
    /// - Throws: ``PredicateError`` if there already is a limit, or the number is not positive.
    public func limited(to limit: Limit) throws(PredicateError) -> Self {
        guard self.limit == nil else { throw Self.failure("the query already has a limit") }
        switch limit {
        case .first(let count), .last(let count):
            guard count > 0 else { throw Self.failure("a limit must be a positive number") }
        }
        var copy = self
        copy.limit = limit
        return copy
    }

    // MARK: What does not fit

    private func checked() throws(PredicateError) -> Self {
        for case let bound? in [start, end] {
            switch FirebaseValue(bound.value).rank {
            case .object: throw Self.failure("a bound must be a text, a number, a boolean or null")
            case .no where ordering == .priority, .yes where ordering == .priority:
                throw Self.failure("a priority must be a text, a number or null")
            default: break
            }
            if let key = bound.key { try Self.checkKey(key) }
            guard ordering == .key else { continue }
            guard bound.key == nil, case .string(let key) = bound.value else {
                throw Self.failure("a bound of an ordering by key must be a single text")
            }
            try Self.checkKey(key)
        }
        if kinds == .sameAsBound, let start, let end,
            FirebaseValue(start.value).kind != FirebaseValue(end.value).kind
        {
            throw Self.failure("the two bounds must be of the same kind")
        }
        return self
    }

    private static func checkKey(_ key: String) throws(PredicateError) {
        guard !key.utf8.contains(where: { ".#$/[]".utf8.contains($0) }) else {
            throw failure("a key must not contain . # $ / [ ]")
        }
    }

    private static func failure(_ reason: String) -> PredicateError {
        PredicateError(.check, reason)
    }
}
