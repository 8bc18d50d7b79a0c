import RelayModel

/// The output of PostgreSQL's plugin wal2json.
///
/// With `format-version` 2, each message is one change. With `format-version` 1, it is a
/// transaction with arrays of changes.
enum WAL2JSONReading {
    private static let actions: [String: ChangeOperation] = [
        "I": .create, "U": .update, "D": .delete,
    ]
    private static let kinds: [String: ChangeOperation] = [
        "insert": .create, "update": .update, "delete": .delete,
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        if reader.object["change"] != nil { return try transaction(reader) }
        let action = try reader.require("action", try reader.string("action"))
        switch action {
        case "B", "C": return .ignored("the begin or commit of a transaction is not a change")
        case "M": return .ignored("a logical decoding message is not a change")
        case "T": throw reader.failure("action", ReportedChange.truncation)
        default: break
        }
        guard let operation = actions[action] else {
            throw reader.failure(
                "action", "\"\(action.prefix(64))\" is unknown; allowed are I, U, D, B, C, M")
        }
        var change = ReportedChange(operation, of: try table(reader))
        let columns = try tuple(reader.array("columns") ?? [], path: reader.path(of: "columns"))
        let identity = try tuple(reader.array("identity") ?? [], path: reader.path(of: "identity"))
        fill(&change, columns, identity, paths: ("columns", "identity"), reader)
        name(&change, by: try primaryKey(reader), identity)
        change.occurredAt = reader.anyMoment("timestamp")
        if let text = reader.anyText("lsn"), let place = LogSequenceNumber.read(text),
            let version = Int64(exactly: place)
        {
            change.version = version
            change.key = (.position, text)
            change.sharesPosition = true
        }
        return .changes([change])
    }

    // MARK: A transaction

    private static func transaction(_ reader: JSONReader) throws(JSONContractError) -> Reading {
        let elements = try reader.array("change") ?? []
        guard elements.count <= Limits.maximumChangesPerRequest else {
            throw reader.failure(
                "change",
                "\(elements.count) changes; \(Limits.maximumChangesPerRequest) are allowed")
        }
        let time = reader.anyMoment("timestamp")
        let end = reader.anyText("nextlsn")
        var changes: [ReportedChange] = []
        var truncation: JSONContractError?
        for (index, element) in elements.enumerated() {
            let inner = try JSONReader(element, path: reader.path(of: "change[\(index)]"))
            let kind = try inner.require("kind", try inner.string("kind"))
            if kind == "message" { continue }
            if kind == "truncate" {
                truncation = truncation ?? inner.failure("kind", ReportedChange.truncation)
                continue
            }
            var change = ReportedChange(
                try inner.operation("kind", kinds), of: try table(inner))
            let columns = try tuple(inner, "column")
            let keys = try inner.reader("oldkeys")
            let identity = if let keys { try tuple(keys, "key") } else { RecordFields() }
            fill(&change, columns, identity, paths: ("columnvalues", "oldkeys"), inner)
            name(&change, by: try inner.reader("pk")?.strings("pknames") ?? [], identity)
            change.occurredAt = time
            if let end { change.key = (.position, "\(end);\(index)") }
            changes.append(change)
        }
        if let truncation { return .partly(changes, truncation) }
        return changes.isEmpty ? .ignored("the transaction changed nothing") : .changes(changes)
    }

    private static func table(_ reader: JSONReader) throws(JSONContractError) -> ReportedTable {
        ReportedTable(
            schema: try reader.string("schema"),
            name: try reader.require("table", try reader.string("table")))
    }

    // MARK: Images

    /// Sets the images from the columns in the log.
    ///
    /// After an update, the log lacks unchanged values that are stored out of line, unless the
    /// replica identity is the whole row.
    private static func fill(
        _ change: inout ReportedChange, _ columns: RecordFields, _ identity: RecordFields,
        paths: (after: String, before: String), _ reader: JSONReader
    ) {
        if change.operation != .create, !identity.isEmpty {
            change.before = ReportedImage(
                fields: identity, completeness: .unsure, path: reader.path(of: paths.before))
        }
        guard change.operation != .delete else { return }
        let isWhole = columns.keys.allSatisfy { identity[$0] != nil }
        let fields = columns.merging(isWhole ? identity : [:]) { new, _ in new }
        change.after = ReportedImage(
            fields: fields,
            completeness: change.operation == .create || isWhole ? .full : .partial,
            path: reader.path(of: paths.after))
    }

    /// Returns columns given as `{"name", "type", "value"}`.
    private static func tuple(
        _ elements: [JSONValue], path: String
    ) throws(JSONContractError) -> RecordFields {
        var fields: RecordFields = [:]
        for (index, element) in elements.enumerated() {
            let column = try JSONReader(element, path: "\(path)[\(index)]")
            let name = try column.require("name", try column.string("name"))
            fields[name] = value(column.object["value"] ?? .null, type: column.anyText("type"))
        }
        return fields
    }

    /// Returns columns given as three arrays of names, types and values.
    private static func tuple(
        _ reader: JSONReader, _ prefix: String
    ) throws(JSONContractError) -> RecordFields {
        let names = try reader.strings("\(prefix)names") ?? []
        let types = try reader.strings("\(prefix)types") ?? []
        let values = try reader.array("\(prefix)values") ?? []
        guard names.count == values.count else {
            throw reader.failure(
                "\(prefix)values", "\(values.count) values for \(names.count) names")
        }
        var fields: RecordFields = [:]
        for (index, name) in names.enumerated() {
            fields[name] = value(
                values[index], type: types.indices.contains(index) ? types[index] : nil)
        }
        return fields
    }

    /// Returns the columns of the primary key in their order (`include-pk`).
    private static func primaryKey(_ reader: JSONReader) throws(JSONContractError) -> [String] {
        (try reader.array("pk") ?? []).compactMap { element in
            guard case .object(let object) = element, case .string(let name)? = object["name"]
            else { return nil }
            return name
        }
    }

    /// Sets the columns that name the row.
    ///
    /// `key` is empty if the primary key was not included.
    private static func name(
        _ change: inout ReportedChange, by key: [String], _ identity: RecordFields
    ) {
        change.formerIsNamed = true
        guard !key.isEmpty else { return }
        change.keyColumns = key
        // The sender decides how many there are.
        let columns = Set(key)
        if identity.keys.allSatisfy(columns.contains) { change.before?.completeness = .partial }
    }

    /// Returns a value converted by its column's type.
    ///
    /// A value that does not fit stays as it came.
    ///
    /// wal2json writes everything except numbers and Booleans as text. It writes those as text too
    /// in the column of a domain, whose own name it gives as the type unless
    /// `include-domain-data-type` is set.
    private static func value(_ json: JSONValue, type: String?) -> FieldValue {
        let plain = FieldValue(plain: json)
        guard let type, case .string(let text) = plain, let kind = PostgresKind(typeName: type)
        else { return plain }
        // For `bytea`, wal2json leaves out the `\x`, except in the column of a domain.
        if kind == .bytes, !text.hasPrefix("\\x") {
            return Hexadecimal.decode(text).map(FieldValue.bytes) ?? plain
        }
        return kind.value(of: Array(text.utf8)[...])
    }
}
