public import RelayModel

extension RecordPredicate {
    /// Creates a predicate from CloudKit Web Services' `filterBy`: an array of filters, all of
    /// which must hold, or one filter as an object.
    ///
    /// `null` means every record.
    ///
    /// - Throws: ``PredicateError`` of the stage `parse`, whose ``PredicateError/path`` names the
    ///   filter by its index.
    public init(filterBy source: JSONValue) throws(PredicateError) {
        do throws(JSONContractError) {
            var room = Limits.maximumPredicateBytes
            switch source {
            case .null: self.init(.and([]))
            case .object:
                self.init(try CloudKitFilter.node(source, path: "filterBy", within: &room))
            case .array(let filters):
                guard filters.count <= CloudKitFilter.maximumFilters else {
                    throw JSONContractError(
                        path: "filterBy",
                        reason: "more than \(CloudKitFilter.maximumFilters) filters")
                }
                var nodes: [Node] = []
                for (index, filter) in filters.enumerated() {
                    nodes.append(
                        try CloudKitFilter.node(
                            filter, path: "filterBy[\(index)]", within: &room))
                }
                self.init(.and(nodes))
            case .bool, .integer, .number, .string:
                throw JSONContractError(
                    path: "filterBy",
                    reason: "an array of filters is expected, found \(source.kind)")
            }
        } catch {
            throw PredicateError(
                .parse, error.reason, expected: "{comparator, fieldName, fieldValue: {value}}",
                path: error.path)
        }
    }
}

/// One filter of `filterBy`.
enum CloudKitFilter {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    /// The maximum number of filters in one `filterBy`.
    ///
    /// Each becomes a term of one AND.
    static let maximumFilters = 1000

    /// CloudKit's comparators (CloudKit JS, `QueryFilterComparator`).
    enum Comparator: String, CaseIterable {
        case equals = "EQUALS"
        case notEquals = "NOT_EQUALS"
        case lessThan = "LESS_THAN"
        case lessThanOrEquals = "LESS_THAN_OR_EQUALS"
        case greaterThan = "GREATER_THAN"
        case greaterThanOrEquals = "GREATER_THAN_OR_EQUALS"
        case near = "NEAR"
        case containsAllTokens = "CONTAINS_ALL_TOKENS"
        case containsAnyTokens = "CONTAINS_ANY_TOKENS"
        case `in` = "IN"
        case notIn = "NOT_IN"
        case beginsWith = "BEGINS_WITH"
        case notBeginsWith = "NOT_BEGINS_WITH"
        case listContains = "LIST_CONTAINS"
        case notListContains = "NOT_LIST_CONTAINS"
        case listContainsAny = "LIST_CONTAINS_ANY"
        case notListContainsAny = "NOT_LIST_CONTAINS_ANY"
        case listContainsAll = "LIST_CONTAINS_ALL"
        case notListContainsAll = "NOT_LIST_CONTAINS_ALL"
        case listMemberBeginsWith = "LIST_MEMBER_BEGINS_WITH"
        case notListMemberBeginsWith = "NOT_LIST_MEMBER_BEGINS_WITH"
    }

    /// The shape of the value that a comparator takes.
    private enum Shape {
        case scalar
        case ordered
        case text
        case location
        case list
    }

    /// Returns the condition of one filter.
    ///
    /// If the filter becomes many comparisons, their size is subtracted from `room`.
    static func node(
        _ filter: JSONValue, path: String, within room: inout Int
    ) throws(JSONContractError) -> Node {
        let reader = try JSONReader(filter, path: path)
        try reader.allowOnly([
            "comparator", "fieldName", "systemFieldName", "fieldValue", "distance",
        ])
        let comparator: Comparator = try reader.require(
            "comparator", try reader.choice("comparator"))
        let field = try fieldName(reader, comparator)
        let valueReader = try reader.require("fieldValue", try reader.reader("fieldValue"))
        let value = try CloudKitValue.read(valueReader)
        try check(value, for: comparator, valueReader)
        room -= size(of: value, for: comparator, within: room)
        guard room >= 0 else {
            throw valueReader.failure(
                "value",
                "the filters up to this one are too long for one condition; allowed are "
                    + "\(Limits.maximumPredicateBytes) bytes")
        }
        let distance = try self.distance(reader, comparator)
        return node(comparator, field, value, distance)
    }

    /// Returns the name of the field, or `nil` for all searchable fields, which only token searches
    /// can use.
    private static func fieldName(
        _ reader: JSONReader, _ comparator: Comparator
    ) throws(JSONContractError) -> String? {
        let name = try reader.string("fieldName")
        let systemName = try reader.string("systemFieldName")
        if name != nil, systemName != nil {
            throw reader.failure(
                "systemFieldName", "cannot be given together with fieldName; give one of them")
        }
        guard let field = name ?? systemName else {
            if comparator == .containsAllTokens || comparator == .containsAnyTokens { return nil }
            throw reader.failure("fieldName", "is required")
        }
        guard !field.isEmpty, field.utf8.count <= Limits.maximumNameBytes else {
            throw reader.failure(
                "fieldName", "a name of 1 to \(Limits.maximumNameBytes) bytes is expected")
        }
        return field
    }

    private static func distance(
        _ reader: JSONReader, _ comparator: Comparator
    ) throws(JSONContractError) -> Double {
        guard let value = reader.value("distance") else {
            if comparator == .near { throw reader.failure("distance", "NEAR needs a distance") }
            return 0
        }
        guard comparator == .near else {
            throw reader.failure("distance", "only NEAR takes a distance")
        }
        guard let metres = value.double, metres >= 0, metres.isFinite else {
            throw reader.failure("distance", "a number of metres, 0 or more, is expected")
        }
        return metres
    }

    private static func shape(of comparator: Comparator) -> Shape {
        switch comparator {
        case .equals, .notEquals, .listContains, .notListContains: .scalar
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals: .ordered
        case .near: .location
        case .containsAllTokens, .containsAnyTokens, .beginsWith, .notBeginsWith,
            .listMemberBeginsWith, .notListMemberBeginsWith:
            .text
        case .in, .notIn, .listContainsAny, .notListContainsAny, .listContainsAll,
            .notListContainsAll:
            .list
        }
    }

    private static func check(
        _ value: FieldValue, for comparator: Comparator, _ reader: JSONReader
    ) throws(JSONContractError) {
        let wanted: String
        switch (shape(of: comparator), value) {
        case (.text, .string), (.location, .location), (.list, .list), (.ordered, .string),
            (.ordered, .integer), (.ordered, .double), (.ordered, .timestamp):
            return
        case (.scalar, .list): wanted = "a single value, not a list"
        case (.scalar, _): return
        case (.text, _): wanted = "a text (STRING)"
        case (.location, _): wanted = "a location (LOCATION)"
        case (.list, _): wanted = "a list (a type that ends in _LIST)"
        case (.ordered, _): wanted = "a number, date or text (INT64, DOUBLE, TIMESTAMP, STRING)"
        }
        throw reader.failure(
            "value", "\(comparator.rawValue) takes \(wanted), found \(value.kind)")
    }

    /// Returns a lower estimate of the text length of a filter that becomes one comparison for each
    /// of its words or values.
    ///
    /// A request body has room for half a million of them. Without this limit they would all be
    /// created before the length of their text is refused, which takes seconds and half a gigabyte.
    /// A text that is too long already is not split into words.
    private static func size(
        of value: FieldValue, for comparator: Comparator, within room: Int
    ) -> Int {
        switch (comparator, value) {
        case (.containsAllTokens, .string(let text)):
            let bytes = text.utf8.count
            guard bytes <= room else { return bytes }
            return max(bytes, TextRoom.termBytes * TokenSearch.words(of: text).count)
        case (.listContainsAll, .list(let values)), (.notListContainsAll, .list(let values)):
            return TextRoom.termBytes * values.count
        default: return 0
        }
    }

    private static func node(
        _ comparator: Comparator, _ field: String?, _ value: FieldValue, _ distance: Double
    ) -> Node {
        let left = field.map { Expression.field($0) } ?? .record
        switch comparator {
        case .equals: return compare(left, .equal, value)
        case .notEquals: return compare(left, .notEqual, value)
        case .lessThan: return compare(left, .less, value)
        case .lessThanOrEquals: return compare(left, .lessOrEqual, value)
        case .greaterThan: return compare(left, .greater, value)
        case .greaterThanOrEquals: return compare(left, .greaterOrEqual, value)
        case .near:
            return compare(.call(.distance, [left, .constant(value)]), .less, .double(distance))
        case .containsAllTokens: return allTokens(left, value)
        case .containsAnyTokens:
            return compare(left, .tokenMatches, value, options: tokenOptions)
        case .in: return compare(left, .in, value)
        case .notIn: return .not(compare(left, .in, value))
        case .beginsWith: return compare(left, .beginsWith, value)
        case .notBeginsWith: return .not(compare(left, .beginsWith, value))
        case .listContains: return compare(left, .contains, value)
        case .notListContains: return .not(compare(left, .contains, value))
        case .listContainsAny: return compare(left, .in, value, quantifier: .any)
        case .notListContainsAny: return .not(compare(left, .in, value, quantifier: .any))
        case .listContainsAll: return allContained(left, value)
        case .notListContainsAll: return .not(allContained(left, value))
        case .listMemberBeginsWith: return compare(left, .beginsWith, value, quantifier: .any)
        case .notListMemberBeginsWith:
            return .not(compare(left, .beginsWith, value, quantifier: .any))
        }
    }

    private static let tokenOptions: RecordPredicate.TextOptions = [
        .ignoringCase, .ignoringDiacritics, .localeAware,
    ]

    private static func compare(
        _ left: Expression, _ comparator: RecordPredicate.Comparator, _ value: FieldValue,
        options: RecordPredicate.TextOptions = [], quantifier: RecordPredicate.Quantifier? = nil
    ) -> Node {
        .comparison(
            RecordPredicate.Comparison(
                left, comparator, .constant(value), options: options, quantifier: quantifier))
    }

    /// Returns one search for each word.
    ///
    /// A text without searchable words is searched as a whole, and never found.
    private static func allTokens(_ left: Expression, _ value: FieldValue) -> Node {
        guard case .string(let text) = value else { return .constant(false) }
        let words = TokenSearch.words(of: text)
        guard !words.isEmpty else {
            return compare(left, .tokenMatches, value, options: tokenOptions)
        }
        return .and(
            words.map { compare(left, .tokenMatches, .string($0), options: tokenOptions) })
    }

    /// Returns `f CONTAINS a AND f CONTAINS b`.
    ///
    /// Every list contains all elements of an empty list.
    private static func allContained(_ left: Expression, _ value: FieldValue) -> Node {
        guard case .list(let values) = value else { return .constant(false) }
        return .and(values.map { compare(left, .contains, $0) })
    }
}
