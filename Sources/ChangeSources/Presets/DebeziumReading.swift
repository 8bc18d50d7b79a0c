import RelayModel

/// Debezium Server's HTTP sink: the value of each record, alone or under `payload` beside its
/// `schema`.
///
/// The record's key is never sent.
enum DebeziumReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        if item.value == .null { return .ignored("a tombstone") }
        let outer = try item.reader()
        let hasSchema = outer.object["payload"] != nil && outer.object["schema"] != nil
        guard hasSchema else { return try read(outer, schema: nil) }
        guard let payload = try outer.reader("payload") else { return .ignored("a tombstone") }
        return try read(payload, schema: DebeziumSchema(outer.object["schema"]))
    }

    private static func read(
        _ reader: JSONReader, schema: DebeziumSchema?
    ) throws(JSONContractError) -> Reading {
        guard let operation = try reader.string("op") else { return try withoutOperation(reader) }
        let source = try reader.require("source", try reader.reader("source"))
        let event = DebeziumEvent(
            operation: operation, source: DebeziumSource(source), sourcePath: source.path)
        return try event.reading(images: reader, schema: schema)
    }

    /// Handles the messages of a connector that are not changes.
    private static func withoutOperation(
        _ reader: JSONReader
    ) throws(JSONContractError) -> Reading {
        let names = Set(reader.object.members.map(\.name))
        if names == ["ts_ms"] { return .ignored("a heartbeat") }
        if names.contains("status"), names.contains("id"), names.contains("event_count") {
            return .ignored("a transaction boundary")
        }
        if names.contains("ddl") || names.contains("tableChanges") {
            return .ignored("a change of the schema")
        }
        throw reader.failure(
            "op",
            "is required; a row unwrapped by ExtractNewRecordState has none: send the whole "
                + "envelope, or use the preset custom")
    }
}

/// One event, in the JSON envelope or as a CloudEvent.
struct DebeziumEvent {
    var operation: String
    var source: DebeziumSource
    var sourcePath: String

    /// Reads the images `before` and `after` of `images`.
    func reading(
        images: JSONReader, schema: DebeziumSchema?
    ) throws(JSONContractError) -> Reading {
        let kind: ChangeOperation
        switch operation {
        case "c", "r": kind = .create
        case "u": kind = .update
        case "d": kind = .delete
        case "m": return .ignored("a logical decoding message")
        case "t":
            throw images.failure("op", ReportedChange.truncation)
        default:
            throw images.failure(
                "op", "\"\(operation.prefix(64))\" is unknown; allowed are c, u, d, r, t, m")
        }
        guard let table = source.table else {
            throw JSONContractError(path: sourcePath, reason: "names no table or collection")
        }
        var change = ReportedChange(kind, of: table)
        change.isSnapshot = operation == "r" || source.isInitialSnapshot
        change.before = try image("before", images, schema)
        change.after = try image("after", images, schema)
        if kind == .update, source.looksUpdatesUp {
            change.isLookedUp = true
            if change.after == nil { change.after = try described(images, change.before) }
        }
        if kind == .delete {
            change.after = nil
            _ = try images.require("before", change.before)
        } else {
            _ = try images.require("after", change.after)
        }
        if kind == .create { change.before = nil }
        change.occurredAt = source.committedAt
        change.version = source.version
        // Rows of one snapshot share a position, as do the two halves of a changed key.
        if let position = source.position {
            change.key = (.position, "\(position);\(operation);\(table.qualifiedName)")
            change.sharesPosition = true
        }
        return .changes([change])
    }

    /// Returns what is known of a MongoDB document that no longer existed when it was looked up.
    ///
    /// That is its ID and the changed fields. The result is `nil` if the ID is unknown.
    private func described(
        _ images: JSONReader, _ before: ReportedImage?
    ) throws(JSONContractError) -> ReportedImage? {
        guard let id = before?.fields["_id"], let update = try images.reader("updateDescription")
        else { return nil }
        var fields: RecordFields = ["_id": id]
        if case .string(let text)? = update.value("updatedFields"),
            let json = try? JSONValue(parsing: text), case .object(let updated) = json
        {
            // A dotted name means that only a part of the field changed, so its whole value is
            // unknown.
            for member in updated.members where !DottedName(member.name).isPart {
                fields[member.name] = ExtendedJSON.value(member.value)
            }
        }
        for name in try update.strings("removedFields") ?? [] where !DottedName(name).isPart {
            fields[name] = .null
        }
        return ReportedImage(fields: fields, completeness: .partial, path: update.path)
    }

    private func image(
        _ name: String, _ images: JSONReader, _ schema: DebeziumSchema?
    ) throws(JSONContractError) -> ReportedImage? {
        let path = images.path(of: name)
        // The MongoDB connector writes documents as text in extended JSON.
        if case .string(let text)? = images.value(name) {
            guard let json = try? JSONValue(parsing: text), case .object(let object) = json else {
                throw JSONContractError(
                    path: path, reason: "must be a text that contains a JSON object")
            }
            return ReportedImage(
                fields: ExtendedJSON.fields(object), completeness: .full, path: path)
        }
        guard let row = try images.reader(name) else { return nil }
        let fields = schema?.fields(row.object, of: name) ?? FieldValue.fields(plain: row.object)
        let known = fields.filter { !UnreadValue.isMeant(by: $0.value) }
        if known.count < fields.count {
            return ReportedImage(fields: known, completeness: .partial, path: path)
        }
        return ReportedImage(
            fields: fields, completeness: name == "after" ? .full : .unsure, path: path)
    }
}
