public import RelayModel

/// An ordered query in the manner of Firebase and Wilddog.
///
/// ``predicate`` says which children lie between the bounds; ``window(of:)`` orders children and
/// applies the limit as well.
public struct FirebaseQuery: Sendable, Hashable {
    /// What children are ordered by; ties are by key.
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

    /// One end of the range.
    public struct Bound: Sendable, Hashable {
        /// The value at which it lies.
        public var value: FieldValue
        /// The key at which it lies among the children with that value.
        public var key: String?
        /// Whether what lies at the bound belongs to the range.
        public var isIncluded: Bool
    }

    /// How many children, counted from which end.
    public enum Limit: Sendable, Hashable {
        /// The first ones.
        case first(Int)
        /// The last ones.
        case last(Int)
    }

    /// Which kinds of values a range takes in.
    public enum Kinds: Sendable, Hashable {
        /// All that the order puts there: `endAt(5)` takes in booleans and nothing (Firebase).
        case ordered
        /// Only values of the bound's kind (Wilddog).
        case sameAsBound
    }

    /// What children are ordered by; `nil` means the priority.
    public internal(set) var ordering: Ordering?
    /// The lower end.
    public internal(set) var start: Bound?
    /// The upper end.
    public internal(set) var end: Bound?
    /// How many children.
    public internal(set) var limit: Limit?
    /// Which kinds of values a range takes in.
    public let kinds: Kinds

    /// Creates a query for all children, ordered by priority.
    public init(kinds: Kinds = .ordered) {
        self.kinds = kinds
    }

    /// This query, ordered by `ordering`.
    ///
    /// - Throws: ``PredicateError`` if it has an ordering already, or its bounds do not fit.
    public func ordered(by ordering: Ordering) throws(PredicateError) -> Self {
        guard self.ordering == nil else {
            throw Self.failure("a query has one ordering")
        }
        var copy = self
        copy.ordering = ordering
        return try copy.checked()
    }

    /// This query, ordered by the value at `path`, whose parts `/` separates.
    ///
    /// - Throws: ``PredicateError`` if the path is empty or one of Firebase's own names.
    public func ordered(byChild path: String) throws(PredicateError) -> Self {
        if ["$key", "$value", "$priority"].contains(path) {
            throw Self.failure("\(path) has an ordering of its own")
        }
        let names = path.split(separator: "/").map(String.init)
        let isValid = names.allSatisfy { !$0.utf8.contains { ".#$[]".utf8.contains($0) } }
        guard !names.isEmpty, isValid else {
            throw Self.failure("a child path has names without . # $ [ ] between slashes")
        }
        return try ordered(by: .child(names))
    }

    /// This query, from `value` on, itself included or not.
    ///
    /// - Throws: ``PredicateError`` if there is a lower bound already, or this one does not fit.
    public func starting(
        at value: FieldValue, key: String? = nil, isIncluded: Bool = true
    ) throws(PredicateError) -> Self {
        guard start == nil else { throw Self.failure("a query has one lower bound") }
        var copy = self
        copy.start = Bound(value: value, key: key, isIncluded: isIncluded)
        return try copy.checked()
    }

    /// This query, up to `value`, itself included or not.
    ///
    /// - Throws: ``PredicateError`` if there is an upper bound already, or this one does not fit.
    public func ending(
        at value: FieldValue, key: String? = nil, isIncluded: Bool = true
    ) throws(PredicateError) -> Self {
        guard end == nil else { throw Self.failure("a query has one upper bound") }
        var copy = self
        copy.end = Bound(value: value, key: key, isIncluded: isIncluded)
        return try copy.checked()
    }

    /// This query, at `value` only.
    ///
    /// - Throws: ``PredicateError`` if there is a bound already, or this one does not fit.
    public func equal(
        to value: FieldValue, key: String? = nil
    ) throws(PredicateError) -> Self {
        try starting(at: value, key: key).ending(at: value, key: key)
    }

    /// This query for a number of children.
    ///
    /// - Throws: ``PredicateError`` if there is a limit already, or it is not positive.
    public func limited(to limit: Limit) throws(PredicateError) -> Self {
        guard self.limit == nil else { throw Self.failure("a query has one limit") }
        switch limit {
        case .first(let count), .last(let count):
            guard count > 0 else { throw Self.failure("a limit is a positive number") }
        }
        var copy = self
        copy.limit = limit
        return copy
    }

    // MARK: What does not fit

    private func checked() throws(PredicateError) -> Self {
        for case let bound? in [start, end] {
            switch FirebaseValue(bound.value).rank {
            case .object: throw Self.failure("a bound is a text, number, boolean or nothing")
            case .no where ordering == .priority, .yes where ordering == .priority:
                throw Self.failure("a priority is a text, a number or nothing")
            default: break
            }
            if let key = bound.key { try Self.checkKey(key) }
            guard ordering == .key else { continue }
            guard bound.key == nil, case .string(let key) = bound.value else {
                throw Self.failure("a bound of keys is one text")
            }
            try Self.checkKey(key)
        }
        if kinds == .sameAsBound, let start, let end,
            FirebaseValue(start.value).kind != FirebaseValue(end.value).kind
        {
            throw Self.failure("the two bounds are of one kind")
        }
        return self
    }

    private static func checkKey(_ key: String) throws(PredicateError) {
        guard !key.utf8.contains(where: { ".#$/[]".utf8.contains($0) }) else {
            throw failure("a key has none of . # $ / [ ]")
        }
    }

    private static func failure(_ reason: String) -> PredicateError {
        PredicateError(.check, reason)
    }
}
