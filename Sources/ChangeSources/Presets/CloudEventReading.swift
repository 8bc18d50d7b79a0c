import RelayModel

/// CloudEvents 1.0, structured, binary and batched, from Debezium or in the relay's own profile.
///
/// In the profile, `type` ends in created, updated or deleted, `subject` is `type/name`, and `data`
/// has the images.
enum CloudEventReading {
    private static let operations: [String: ChangeOperation] = [
        "created": .create, "create": .create, "updated": .update, "update": .update,
        "deleted": .delete, "delete": .delete,
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let id = try reader.require("id", try reader.string("id"))
        let source = try reader.require("source", try reader.string("source"))
        let type = try reader.require("type", try reader.string("type"))
        guard try reader.string("specversion") == "1.0" else {
            throw reader.failure("specversion", "must be \"1.0\"")
        }
        guard !id.isEmpty, !source.isEmpty else {
            throw reader.failure("id", "id and source must not be empty")
        }
        if type.lowercased().hasSuffix(".datachangeevent") {
            return try debezium(reader, try data(reader), key: "\(source);\(id)")
        }
        // The sender may post events of other types to the same URL, and would repeat refused ones.
        let verb = type.split(separator: ".").last.map { $0.lowercased() } ?? ""
        guard let operation = operations[verb] else {
            return .ignored("the type does not end in .created, .updated or .deleted")
        }
        return try profile(
            reader, try data(reader), operation, key: "\(source);\(id)", item: item)
    }

    /// Returns the object in `data` or in `data_base64`.
    private static func data(_ reader: JSONReader) throws(JSONContractError) -> JSONReader {
        if let text = try reader.string("data_base64") {
            guard let bytes = Base64.decode(text), let json = try? JSONValue(parsing: bytes) else {
                throw reader.failure("data_base64", "must be JSON in base64")
            }
            return try JSONReader(json, path: reader.path(of: "data_base64"))
        }
        return try reader.require("data", try reader.reader("data"))
    }

    /// Reads an event with Debezium's own attributes.
    ///
    /// `data` may be wrapped together with its schema.
    private static func debezium(
        _ reader: JSONReader, _ data: JSONReader, key: String
    ) throws(JSONContractError) -> Reading {
        let operation = try reader.require("iodebeziumop", try reader.string("iodebeziumop"))
        // The attributes are the members of `source` in the plain envelope, reduced to lower-case
        // letters and digits.
        var source = JSONObject()
        for name in DebeziumSource.members {
            let attribute = name.lowercased().filter { $0 != "_" }
            guard let value = reader.value("iodebezium\(attribute)") else { continue }
            source[name] = value
        }
        source["ts_ms"] = reader.value("iodebeziumtsms")
        let event = DebeziumEvent(
            operation: operation, source: DebeziumSource(try JSONReader(.object(source))),
            sourcePath: reader.path)
        let payload = data.object["schema"] == nil ? nil : try data.reader("payload")
        let schema = payload == nil ? nil : DebeziumSchema(data.object["schema"])
        let reading = try event.reading(images: payload ?? data, schema: schema)
        guard case .changes(var changes) = reading else { return reading }
        for index in changes.indices where changes[index].key == nil {
            // Rows of one statement may share one ID, and so may the two halves of a changed key.
            changes[index].key = (.delivery, "\(key);\(operation)")
            changes[index].sharesPosition = true
        }
        return .changes(changes)
    }

    private static func profile(
        _ reader: JSONReader, _ data: JSONReader, _ operation: ChangeOperation, key: String,
        item: SourceItem
    ) throws(JSONContractError) -> Reading {
        try data.allowOnly(["before", "after", "origin"])
        let (table, name) = try subject(reader, item)
        var change = ReportedChange(operation, of: table)
        change.recordName = name
        if operation != .create { change.before = try data.row("before", .full) }
        if operation != .delete {
            change.after = try data.require("after", try data.row("after", .full))
        }
        if let origin = try data.reader("origin") {
            try origin.allowOnly(["deviceID", "userRecordName"])
            change.deviceID = try origin.identifier("deviceID", as: DeviceID.self)?.rawValue
            change.userID = try origin.identifier("userRecordName", as: UserID.self)?.rawValue
        }
        change.occurredAt = reader.anyMoment("time")
        change.key = (.delivery, key)
        return .changes([change])
    }

    /// Returns the table and the record name from `type/name`, or from the name alone if the
    /// mapping names the table.
    private static func subject(
        _ reader: JSONReader, _ item: SourceItem
    ) throws(JSONContractError) -> (ReportedTable, String?) {
        let subject = try reader.string("subject")
        if item.source.mapping.table != nil { return (try item.configuredTable(), subject) }
        // By bytes: as characters, a slash and a combining mark at the start of the name would be
        // one.
        let parts = (subject ?? "").utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1)
            .map { String(Substring($0)) }
        guard parts.count == 2 else {
            throw reader.failure("subject", "must be the record type, a slash and the record name")
        }
        return (ReportedTable(name: parts[0]), parts[1])
    }

    // MARK: - The binary mode

    /// Returns the structured form of a request whose attributes are in headers (`ce-id`,
    /// percent-encoded).
    static func structured(_ request: WebhookRequest) throws(DecodeError) -> JSONValue {
        var object = JSONObject()
        for name in request.headers.names where name.hasPrefix("ce-") {
            guard let value = request.headers[name], let text = percentDecoded(unquoted(value))
            else {
                throw DecodeError(
                    .malformed, path: "header \(name)", reason: "must be percent-encoded UTF-8")
            }
            // In a body, the JSON parser refuses such texts.
            guard !text.hasEndlessMarks else {
                throw DecodeError(
                    .malformed, path: "header \(name)",
                    reason: "has too many combining marks in a row")
            }
            object[String(name.dropFirst(3))] = .string(text)
        }
        // An event may have no data, for example one of an ignored type.
        if !request.body.isEmpty { object["data"] = try ChangeSource.parse(request.body) }
        return .object(object)
    }

    /// Returns the text between double quotes, which senders of an earlier edition put around
    /// values.
    private static func unquoted(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard scalars.count >= 2, scalars.first == "\"", scalars.last == "\"" else { return text }
        var value = ""
        var isEscaped = false
        for scalar in scalars.dropFirst().dropLast() {
            if scalar == "\\", !isEscaped {
                isEscaped = true
            } else {
                value.unicodeScalars.append(scalar)
                isEscaped = false
            }
        }
        return value
    }

    private static func percentDecoded(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2,
                let value = Hexadecimal.decode(String(decoding: digits, as: UTF8.self))
            else { return nil }
            bytes += value
            rest = rest.dropFirst(2)
        }
        return String(utf8: bytes)
    }
}
