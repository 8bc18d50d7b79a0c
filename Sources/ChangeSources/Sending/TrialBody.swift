import RelayModel

/// A sample change as a source's sender posts it, with an invented row that satisfies the source's
/// mapping.
struct TrialBody {
    private let source: ChangeSource
    private let schema: String
    private let table: String
    /// Whether the attributes of an event are headers, so that the body has only its data.
    private let isBinary: Bool

    /// The placeholder that the shell script replaces with the time.
    static let unique = "trial-now"

    init(of source: ChangeSource, schema: String, table: String, isBinary: Bool) {
        self.source = source
        self.schema = schema
        self.table = table
        self.isBinary = isBinary
    }

    // MARK: What the mapping asks for

    /// The places besides fields that the mapping names, with sample values.
    private var places: [(place: ValuePlace, value: JSONValue)] {
        let places = source.mapping.places(of: reported)
        return PlaceRole.allCases.compactMap { role in
            places[role].map { place in
                (place: place, value: value(of: role, isOwned: places.owner != nil))
            }
        }
    }

    /// The table as the source reads it.
    private var reported: ReportedTable {
        if source.preset == .custom || source.preset == .minapp,
            case .constant(let name)? = source.mapping.table
        {
            return ReportedTable(name: name)
        }
        return ReportedTable(schema: schema, name: table)
    }

    private func value(of role: PlaceRole, isOwned: Bool) -> JSONValue {
        switch role {
        case .zone: "trial"
        case .database: isOwned ? "private" : "public"
        case .owner, .readers: "trial-user"
        case .version: 1
        case .occurredAt: "2026-01-02T03:04:05Z"
        }
    }

    /// Returns a row with the columns of `usual` and those that the mapping names, in the types
    /// that it states.
    private func row(_ usual: JSONObject) -> JSONObject {
        var row: JSONObject = [:]
        for (column, value) in usual.members { row[column] = self.value(of: column, value) }
        for column in source.mapping.namingKey(of: reported) ?? [] where row[column] == nil {
            row[column] = value(of: column, "trial-1")
        }
        for (place, value) in places {
            guard case .column(let column) = place, row[column] == nil else { continue }
            row[column] = self.value(of: column, value)
        }
        return row
    }

    private func value(of column: String, _ usual: JSONValue) -> JSONValue {
        let (table, columns) = (reported, source.mapping.columns)
        let kind =
            columns["\(table.qualifiedName).\(column)"] ?? columns["\(table.name).\(column)"]
            ?? columns[column]
        return kind?.sample ?? usual
    }

    /// The header fields that the mapping names.
    var headers: [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        for (place, value) in places {
            guard case .header(let name) = place else { continue }
            headers.append((name, text(value)))
        }
        if case .header(let name)? = source.mapping.table { headers.append((name, table)) }
        if source.preset == .custom, case .header(let name)? = source.mapping.body?.operation {
            headers.append((name, operation))
        }
        return headers
    }

    private func text(_ value: JSONValue) -> String {
        if case .string(let text) = value { text } else { value.text }
    }

    /// The word for a creation.
    private var operation: String {
        let words = source.mapping.body?.operations ?? [:]
        let creations = words.filter { $0.value == .create }.keys
        if creations.contains("create") { return "create" }
        return creations.min() ?? words.keys.min() ?? "create"
    }

    // MARK: The body

    /// The body as the sender writes it.
    var json: JSONValue {
        guard source.preset == .custom else { return pointed(in: usual) }
        guard let layout = source.mapping.body else { return usual }
        var change: JSONValue = [:]
        let made = JSONValue.object(row(["id": "trial-1", "title": "Tried"]))
        if let after = layout.after { change = after.placing(made, in: change) }
        if case .pointer(let pointer) = layout.operation {
            change = pointer.placing(.string(operation), in: change)
        }
        if case .pointer(let pointer)? = source.mapping.table {
            change = pointer.placing(.string(table), in: change)
        }
        change = pointed(in: change)
        return layout.items.map { $0.placing([change], in: [:]) } ?? change
    }

    /// Returns `change` with values at the pointers that the mapping names.
    private func pointed(in change: JSONValue) -> JSONValue {
        places.reduce(change) { change, asked in
            guard case .pointer(let pointer) = asked.place, pointer.value(in: change) == nil else {
                return change
            }
            return pointer.placing(asked.value, in: change)
        }
    }

    private var usual: JSONValue {
        let named = row(["title": "Tried"])
        let identified = JSONValue.object(row(["id": "trial-1", "title": "Tried"]))
        let (schema, name) = (JSONValue.string(self.schema), JSONValue.string(table))
        switch source.preset {
        case .belfry, .custom:
            return [
                "operation": "create", "recordType": name, "recordName": "trial-1",
                "after": .object(named),
            ]
        case .debezium:
            return [
                "op": "c", "before": .null, "after": identified,
                "source": [
                    "connector": "trial", "name": "trial", "schema": schema, "table": name,
                ],
            ]
        case .supabase:
            return [
                "type": "INSERT", "schema": schema, "table": name, "record": identified,
                "old_record": .null,
            ]
        case .hasura:
            return [
                "id": .string(Self.unique), "table": ["schema": schema, "name": name],
                "event": ["op": "INSERT", "data": ["old": .null, "new": identified]],
            ]
        case .cloudevents where isBinary: return ["after": .object(named)]
        case .cloudevents:
            return [
                "specversion": "1.0", "id": .string(Self.unique), "source": "/trial",
                "type": "trial.record.created", "subject": .string("\(table)/trial-1"),
                "data": ["after": .object(named)],
            ]
        case .mongodb:
            return [
                "operationType": "insert", "ns": ["db": "trial", "coll": name],
                "documentKey": ["_id": value(of: "_id", "trial-1")],
                "fullDocument": .object(row(["_id": "trial-1", "title": "Tried"])),
            ]
        case .dynamodb: return dynamoDB
        case .wal2json:
            return [
                "action": "I", "schema": schema, "table": name,
                "columns": .array(
                    row(["id": "trial-1", "title": "Tried"]).members.map { member in
                        member.value.ofWAL2JSON(member.name)
                    }),
            ]
        case .postgres:
            return [
                "operation": "create", "schema": schema, "table": name, "key": ["id"],
                "after": identified, "position": .string(Self.unique),
            ]
        case .parse, .appwrite, .directus, .strapi, .minapp, .airtable, .cloudkit:
            return ofBackend(named, name)
        }
    }

    /// Returns the bodies of whole backends, each of which has its own format for records.
    private func ofBackend(_ named: JSONObject, _ name: JSONValue) -> JSONValue {
        switch source.preset {
        case .parse:
            [
                "triggerName": "afterSave",
                "object": .object(
                    row(["className": name, "objectId": "trial-1", "title": "Tried"])),
            ]
        case .appwrite:
            .object(
                row([
                    "$id": "trial-1", "$databaseId": "trial", "$collectionId": name,
                    "title": "Tried",
                ]))
        case .directus:
            [
                "event": "items.create", "collection": name, "key": value(of: "id", "trial-1"),
                "payload": .object(named),
            ]
        case .strapi:
            [
                "event": "entry.create", "model": name,
                "entry": .object(row(["id": 1, "documentId": "trial-1", "title": "Tried"])),
            ]
        case .airtable:
            [
                "changedTablesById": .object(
                    JSONObject([
                        (
                            name: table,
                            value: [
                                "createdRecordsById": [
                                    "trial-1": ["cellValuesByFieldId": .object(named)]
                                ]
                            ]
                        )
                    ]))
            ]
        case .cloudkit:
            [
                "recordName": "trial-1", "recordType": name,
                "fields": .object(
                    JSONObject(
                        named.members.map { member in
                            (name: member.name, value: member.value.ofCloudKit)
                        })),
            ]
        default: .object(row(["id": "trial-1", "title": "Tried"]))
        }
    }

    private var dynamoDB: JSONValue {
        let image = JSONObject(
            row(["id": "trial-1", "title": "Tried"]).members.map { member in
                (name: member.name, value: member.value.ofDynamoDB)
            })
        return [
            "Records": [
                [
                    "eventName": "INSERT",
                    "dynamodb": ["Keys": ["id": image["id"] ?? .null], "NewImage": .object(image)],
                    "eventSourceARN": .string("arn:aws:dynamodb:x:1:table/\(table)/s"),
                ]
            ]
        ]
    }
}

private extension ColumnType {
    /// A sample value of a column of this type in JSON; `nil` if a text will do.
    var sample: JSONValue? {
        switch self {
        case .timestamp: "2026-01-02T03:04:05Z"
        case .seconds: 1_767_323_045
        case .milliseconds: 1_767_323_045_000
        case .microseconds: 1_767_323_045_000_000
        case .nanoseconds: 1_767_323_045_000_000_000
        case .days: 20_455
        case .location: "1,2"
        case .bytes: "AA=="
        case .uuid: "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
        case .objectID: "65a000000000000000000001"
        case .integer, .number: 1
        case .boolean: true
        case .set: ["trial"]
        case .json: "{}"
        case .reference, .text: nil
        }
    }
}

private extension JSONValue {
    /// Returns this value as a column in wal2json's format, with the name of a suitable type.
    func ofWAL2JSON(_ name: String) -> JSONValue {
        let type: JSONValue =
            switch self {
            case .integer: "bigint"
            case .bool: "boolean"
            default: "text"
            }
        return ["name": .string(name), "type": type, "value": self]
    }

    /// This value as a CloudKit field.
    var ofCloudKit: JSONValue {
        let type: JSONValue =
            switch self {
            case .integer, .bool: "INT64"
            case .array: "STRING_LIST"
            default: "STRING"
            }
        let value: JSONValue = self == true ? 1 : self
        return ["value": value, "type": type]
    }

    /// This value in DynamoDB's notation.
    var ofDynamoDB: JSONValue {
        switch self {
        case .integer(let number): ["N": .string(String(number))]
        case .bool: ["BOOL": self]
        case .array(let elements): ["L": .array(elements.map(\.ofDynamoDB))]
        case .string: ["S": self]
        default: ["S": .string(text)]
        }
    }
}

private extension JSONPointer {
    /// Returns a document with `value` at this place, creating the objects on the way.
    func placing(_ value: JSONValue, in document: JSONValue) -> JSONValue {
        Self.placing(value, at: tokens[...], in: document)
    }

    private static func placing(
        _ value: JSONValue, at tokens: ArraySlice<String>, in document: JSONValue
    ) -> JSONValue {
        guard let token = tokens.first else {
            // The row may be the whole document, beside members that are already there.
            guard case .object(let members) = value, case .object(var known) = document else {
                return value
            }
            for member in members.members { known[member.name] = member.value }
            return .object(known)
        }
        // Nothing is inserted into lists, because their other elements are unknown.
        if case .array = document { return document }
        var object: JSONObject = [:]
        if case .object(let members) = document { object = members }
        object[token] = placing(value, at: tokens.dropFirst(), in: object[token] ?? .null)
        return .object(object)
    }
}
