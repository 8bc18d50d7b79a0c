import RelayModel

extension SourceMapping {
    private static let members = [
        "recordTypes", "recordTypeTemplate", "key", "keys", "tables", "columns", "ignoredTables",
        "dedupe", "beforeImage", "order", "table", "body",
    ]

    /// The maximum number of tables in one member, which is that of record types in a schema.
    private static let mostTables = Limits.maximumRecordTypes
    private static let mostColumns = 10_000

    /// The members that the relay's own format makes unnecessary.
    private static let notForBelfry: Set<String> = [
        "recordTypeTemplate", "key", "keys", "beforeImage", "table", "body",
    ]

    /// Parses a mapping.
    ///
    /// Members that the preset would not use are refused.
    init(reader: JSONReader, preset: SourcePreset) throws(JSONContractError) {
        self.init()
        try reader.allowOnly(
            (Self.members + RowPlaces.members).filter { member in
                if preset == .belfry { return !Self.notForBelfry.contains(member) }
                return member != "body" || preset == .custom
            })
        try readTables(reader)
        places = try RowPlaces(reader: reader)
        table = try reader.place("table")
        dedupe = try reader.places("dedupe") ?? []
        columns = try reader.table("columns", most: Self.mostColumns) {
            json, path throws(JSONContractError) in
            try ColumnType(json: json, path: path)
        }
        beforeImage = try reader.choice("beforeImage") ?? .auto
        order = try reader.choice("order") ?? .position
        if let layout = try reader.reader("body") { body = try BodyLayout(reader: layout) }
    }

    private mutating func readTables(_ reader: JSONReader) throws(JSONContractError) {
        recordTypes = try reader.table("recordTypes", most: Self.mostTables) {
            json, path throws(JSONContractError) in
            guard case .string(let text) = json, let type = RecordType(rawValue: text) else {
                throw JSONContractError(path: path, reason: "not \(RecordType.rule)")
            }
            return type
        }
        if let template = try reader.string("recordTypeTemplate") {
            guard template.contains("{table}"), template.utf8.count <= Limits.maximumNameBytes
            else { throw reader.failure("recordTypeTemplate", "must contain {table}") }
            if let other = Self.unknownPart(of: template) {
                throw reader.failure(
                    "recordTypeTemplate",
                    "\"{\(other)}\" is unknown; allowed are {database}, {schema}, {table}")
            }
            recordTypeTemplate = template
        }
        key = try reader.value("key").map { json throws(JSONContractError) in
            try Self.keyColumns(json, path: reader.path(of: "key"))
        }
        keys = try reader.table("keys", most: Self.mostTables) {
            json, path throws(JSONContractError) in
            try Self.keyColumns(json, path: path)
        }
        let ignored = try reader.strings("ignoredTables") ?? []
        try reader.check(ignored, of: "ignoredTables", most: Self.mostTables)
        ignoredTables = Set(ignored)
        tables = try reader.table("tables", most: Self.mostTables) {
            json, path throws(JSONContractError) in
            try TablePlaces(json: json, path: path)
        }
    }

    /// Returns the first word in braces that is not a placeholder.
    private static func unknownPart(of template: String) -> Substring? {
        template.split(separator: "{", omittingEmptySubsequences: false).dropFirst()
            .compactMap { part in
                part.firstIndex(of: "}").map { part[..<$0] }
            }
            .first { !["database", "schema", "table"].contains($0) }
    }

    /// Parses one name or a list of names.
    private static func keyColumns(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> [String] {
        let reader = try JSONReader(["key": json.asList])
        guard let names = try? reader.strings("key"), (1...16).contains(names.count),
            names.allSatisfy({ !$0.isEmpty })
        else {
            throw JSONContractError(
                path: path, reason: "must be the name of a column, or a list of 1 to 16 names")
        }
        return names
    }

    var json: JSONObject {
        var object: JSONObject = [:]
        if !recordTypes.isEmpty {
            object["recordTypes"] = Self.sorted(recordTypes) { .string($0.rawValue) }
        }
        if recordTypeTemplate != Self.usualTemplate {
            object["recordTypeTemplate"] = .string(recordTypeTemplate)
        }
        object["key"] = key.map(Self.list)
        if !keys.isEmpty { object["keys"] = Self.sorted(keys, Self.list) }
        places.write(into: &object)
        if !tables.isEmpty { object["tables"] = Self.sorted(tables, \.json) }
        if !columns.isEmpty { object["columns"] = Self.sorted(columns) { .string($0.rawValue) } }
        if !ignoredTables.isEmpty { object["ignoredTables"] = Self.list(ignoredTables.sorted()) }
        if !dedupe.isEmpty { object["dedupe"] = .array(dedupe.map(\.json)) }
        if beforeImage != .auto { object["beforeImage"] = .string(beforeImage.rawValue) }
        if order != .position { object["order"] = .string(order.rawValue) }
        object["table"] = table?.json
        object["body"] = body?.json
        return object
    }

    private static func list(_ texts: [String]) -> JSONValue {
        .array(texts.map { .string($0) })
    }

    static func sorted<Value>(
        _ table: [String: Value], _ json: (Value) -> JSONValue
    ) -> JSONValue {
        .object(
            JSONObject(table.sorted { $0.key < $1.key }.map { ($0.key, json($0.value)) }))
    }
}

extension BodyLayout {
    init(reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(
            ["items", "operation", "operations", "before", "after", "afterCompleteness"])
        let operations = try reader.table("operations", most: Limits.maximumRecordTypes) {
            json, path throws(JSONContractError) -> ChangeOperation in
            let inner = try JSONReader(["operation": json])
            guard let choice = try? inner.choice("operation", as: ChangeOperation.self) else {
                throw JSONContractError(
                    path: path, reason: "must be \"create\", \"update\" or \"delete\"")
            }
            return choice
        }
        self.init(
            items: try reader.pointer("items"),
            operation: try reader.require("operation", try reader.place("operation")),
            operations: operations.isEmpty ? Self.usualOperations : operations.lowercasedKeys,
            before: try reader.pointer("before"), after: try reader.pointer("after"),
            afterCompleteness: try reader.choice("afterCompleteness") ?? .full)
        guard before != nil || after != nil else {
            throw reader.failure("after", "\"before\" or \"after\" is required")
        }
    }

    var json: JSONValue {
        var object: JSONObject = ["operation": operation.json]
        object["items"] = items.map { .string($0.description) }
        object["operations"] = SourceMapping.sorted(operations) { .string($0.rawValue) }
        object["before"] = before.map { .string($0.description) }
        object["after"] = after.map { .string($0.description) }
        object["afterCompleteness"] = .string(afterCompleteness.rawValue)
        return .object(object)
    }
}

extension [String: ChangeOperation] {
    /// The same operations, with the words in lower case.
    var lowercasedKeys: [String: ChangeOperation] {
        Dictionary(map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    }
}
