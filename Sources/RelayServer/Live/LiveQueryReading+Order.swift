import Live
import PredicateLanguage
import RegularExpressions
import RelayModel

extension LiveQueryReading {
    static let orderMembers = ["sortBy", "orderBy", "rules", "limit", "start", "end"]

    /// The maximum number of keys in an order.
    private static let maximumKeys = 3
    /// The maximum number of records in a limit.
    private static let maximumLimit = 1000
    /// The maximum length of the path to a child in bytes; the path is followed for each record.
    private static let maximumPathBytes = 1024

    /// Reads the order of a result, its bounds and its limit.
    func readOrder(
        _ reader: JSONReader, _ definition: RecordTypeDefinition?, into query: inout LiveQuery
    ) throws {
        query.limit = try limit(reader)
        if reader.value("orderBy") != nil {
            query.firebase = try firebase(reader, definition)
            return
        }
        if reader.value("rules") != nil {
            throw reader.failure("rules", "is allowed only with orderBy")
        }
        query.order = try keys(reader, definition)
        query.start = try bound(reader, "start", of: query.order.first, definition)
        query.end = try bound(reader, "end", of: query.order.first, definition)
        guard query.order.isEmpty else { return }
        for name in ["limit", "start", "end"] where reader.value(name) != nil {
            throw reader.failure(name, "requires an order: set sortBy or orderBy")
        }
    }

    private func keys(
        _ reader: JSONReader, _ definition: RecordTypeDefinition?
    ) throws -> [LiveSortKey] {
        let elements = try reader.array("sortBy") ?? []
        guard elements.count <= Self.maximumKeys else {
            throw reader.failure("sortBy", "at most \(Self.maximumKeys) keys are allowed")
        }
        return try elements.enumerated().map { index, element in
            let key = try JSONReader(element, path: reader.path(of: "sortBy[\(index)]"))
            try key.allowOnly(["fieldName", "systemFieldName", "ascending"])
            let name = try key.string("fieldName") == nil ? "systemFieldName" : "fieldName"
            let field = try key.require("fieldName", try key.string(name))
            guard isSortable(field, definition) else {
                throw key.failure(
                    name, "the field \(field.shortened) is unknown or not marked sortable")
            }
            return LiveSortKey(field, isAscending: try key.bool("ascending") ?? true)
        }
    }

    /// Returns whether an order may use a field; an inferred schema forbids nothing.
    private func isSortable(_ field: String, _ definition: RecordTypeDefinition?) -> Bool {
        guard field.utf8.count <= Limits.maximumNameBytes else { return false }
        if definition?.isInferred == true { return true }
        return definition?.fields[field]?.uses.contains(.sortable)
            ?? RecordSchema.isSystemField(field)
    }

    private func limit(_ reader: JSONReader) throws -> LiveLimit? {
        guard let limit = try reader.reader("limit") else { return nil }
        try limit.allowOnly(["first", "last"])
        func count(_ name: String) throws -> Int? {
            guard let count = try limit.integer(name) else { return nil }
            guard (1...Int64(Self.maximumLimit)).contains(count) else {
                throw limit.failure(name, "must be 1 to \(Self.maximumLimit)")
            }
            return Int(count)
        }
        switch (try count("first"), try count("last")) {
        case (let first?, nil): return .first(first)
        case (nil, let last?): return .last(last)
        default:
            throw reader.failure("limit", "must be {\"first\": n} or {\"last\": n}")
        }
    }

    private func bound(
        _ reader: JSONReader, _ name: String, of key: LiveSortKey?,
        _ definition: RecordTypeDefinition?
    ) throws -> LiveBound? {
        guard let bound = try reader.reader(name) else { return nil }
        try bound.allowOnly(["value", "isIncluded"])
        let value = try value(of: bound)
        if let key { try checkKind(of: value, in: key.field, bound, definition) }
        return LiveBound(value, isIncluded: try bound.bool("isIncluded") ?? true)
    }

    /// Refuses a bound whose kind differs from the field's, because all values of the field would
    /// come before it, or all after it.
    private func checkKind(
        of value: FieldValue, in field: String, _ bound: JSONReader,
        _ definition: RecordTypeDefinition?
    ) throws {
        var known: [String: RecordSchema.Field] = [:]
        if let definition, !definition.isInferred, let type = definition.fields[field]?.type {
            known[field] = RecordSchema.Field(RecordSchema.FieldType(type))
        }
        let comparison = RecordPredicate.Comparison(.field(field), .equal, .constant(value))
        do throws(PredicateError) {
            try RecordPredicate(.comparison(comparison))
                .check(schema: RecordSchema(knownOnly: known))
        } catch {
            let hint = error.hint.map { "; \($0)" } ?? ""
            throw bound.failure("value", error.reason + hint)
        }
    }

    /// Returns the value of a bound, which may be `null`.
    private func value(of bound: JSONReader) throws -> FieldValue {
        let value = try bound.require("value", bound.object["value"])
        return try FieldValue(argument: value, path: bound.path(of: "value"))
    }

    // MARK: Firebase's and Wilddog's orders

    private enum Rules: String, CaseIterable {
        case firebase
        case wilddog
    }

    private enum OwnOrder: String, CaseIterable {
        case key
        case value
        case priority
    }

    private func firebase(
        _ reader: JSONReader, _ definition: RecordTypeDefinition?
    ) throws -> FirebaseQuery {
        if reader.value("sortBy") != nil {
            throw reader.failure("sortBy", "cannot be given together with orderBy")
        }
        let rules: Rules = try reader.choice("rules") ?? .firebase
        var query = FirebaseQuery(kinds: rules == .wilddog ? .sameAsBound : .ordered)
        query = try ordered(query, reader, definition)
        for name in ["start", "end"] {
            guard let bound = try reader.reader(name) else { continue }
            try bound.allowOnly(["value", "key", "isIncluded"])
            let value = try value(of: bound)
            let key = try bound.string("key")
            try checkName(key, bound, "key")
            if query.ordering == .key, case .string(let name) = value {
                try checkName(name, bound, "value")
            }
            let isIncluded = try bound.bool("isIncluded") ?? true
            query = try Self.fitting(reader, name) { () throws(PredicateError) in
                name == "start"
                    ? try query.starting(at: value, key: key, isIncluded: isIncluded)
                    : try query.ending(at: value, key: key, isIncluded: isIncluded)
            }
        }
        if rules == .wilddog { try checkTruth(query, reader) }
        return query
    }

    /// Refuses a bound's key that is longer than any record name, because it is compared with each
    /// record's key, completely if both consist of digits.
    private func checkName(
        _ name: String?, _ bound: JSONReader, _ member: String
    ) throws {
        let most = Limits.maximumRecordNameBytes
        guard name?.utf8.count ?? 0 <= most else {
            throw bound.failure(member, "must be at most \(most) bytes")
        }
    }

    /// Refuses a range of booleans, as Wilddog does: there is nothing between false and true, so
    /// one of them was meant.
    private func checkTruth(_ query: FirebaseQuery, _ reader: JSONReader) throws {
        for (name, bound) in [("start", query.start), ("end", query.end)] {
            guard case .bool? = bound?.value, query.start?.value != query.end?.value else {
                continue
            }
            throw reader.failure(
                name, "a boolean cannot bound a range; give the same boolean as start and as end")
        }
    }

    private func ordered(
        _ query: FirebaseQuery, _ reader: JSONReader, _ definition: RecordTypeDefinition?
    ) throws -> FirebaseQuery {
        guard case .object? = reader.value("orderBy") else {
            guard let order: OwnOrder = try? reader.choice("orderBy") else {
                throw reader.failure(
                    "orderBy", "must be \"key\", \"value\", \"priority\" or {\"child\": \"a/b\"}")
            }
            let ordering: FirebaseQuery.Ordering =
                switch order {
                case .key: .key
                case .value: .value
                case .priority: .priority
                }
            if order != .key, definition?.fields[order.rawValue] != nil,
                !isSortable(order.rawValue, definition)
            {
                throw reader.failure(
                    "orderBy", "the field \(order.rawValue) is not marked sortable")
            }
            return try Self.fitting(reader, "orderBy") { () throws(PredicateError) in
                try query.ordered(by: ordering)
            }
        }
        let order = try reader.require("orderBy", try reader.reader("orderBy"))
        try order.allowOnly(["child"])
        let path = try order.require("child", try order.string("child"))
        guard path.utf8.count <= Self.maximumPathBytes else {
            throw order.failure("child", "a path may have at most \(Self.maximumPathBytes) bytes")
        }
        let query = try Self.fitting(order, "child") { () throws(PredicateError) in
            try query.ordered(byChild: path)
        }
        guard case .child(let names)? = query.ordering, let field = names.first,
            isSortable(field, definition)
        else {
            throw order.failure(
                "child", "the field \(path.shortened) is unknown or not marked sortable")
        }
        return query
    }

    private static func fitting<Value>(
        _ reader: JSONReader, _ member: String, _ body: () throws(PredicateError) -> Value
    ) throws -> Value {
        do throws(PredicateError) { return try body() } catch {
            throw reader.failure(member, error.reason)
        }
    }
}
