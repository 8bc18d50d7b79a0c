package import RelayModel

/// A change of a row from a database's own log: the format of the preset `postgres`.
///
/// A follower within the relay passes it on directly. A follower elsewhere posts its ``json``.
package struct FollowedRow: Sendable, Hashable {
    /// The operation on the row.
    package enum Operation: String, Sendable, Hashable {
        case create, update, delete
        /// The whole table was emptied. The change names no record.
        case truncate
    }

    /// The operation on the row.
    package var operation: Operation
    /// The name of the database.
    package var database: String?
    /// The schema of the table.
    package var schema: String
    /// The table's name, without the schema.
    package var table: String
    /// The columns of the primary key, or of the replica identity in its place.
    package var key: [String]
    /// The row before the change, as far as the log shows it; `nil` if it shows nothing.
    package var before: RecordImage?
    /// The row after the change; `nil` after a deletion.
    package var after: RecordImage?
    /// The columns that identify the row which has by now taken over this row's former name.
    ///
    /// Within one transaction, another row can take over the key, which PostgreSQL allows if the
    /// key is `DEFERRABLE`.
    package var formerTakenBy: RecordFields?
    /// The device that made the change, if the transaction names it.
    package var deviceID: String?
    /// The user who made the change, if the transaction names it.
    package var userID: String?
    /// When the transaction was committed, or when the outbox's trigger ran.
    package var occurredAt: Timestamp?
    /// The version, which grows with each change of a record.
    package var version: Int64?
    /// The identifier of this change, which stays the same when it is sent again.
    package var position: String
    /// Whether the row belongs to an initial load, which fires nothing.
    package var isSnapshot = false

    /// Creates a change with only the required properties.
    package init(
        _ operation: Operation, schema: String, table: String, key: [String], position: String
    ) {
        self.operation = operation
        self.schema = schema
        self.table = table
        self.key = key
        self.position = position
    }
}

extension FollowedRow {
    private static let members = [
        "operation", "database", "schema", "table", "key", "before", "beforeCompleteness", "after",
        "afterCompleteness", "formerTakenBy", "origin", "occurredAt", "version", "position",
        "snapshot",
    ]

    /// The form in which the change is posted.
    ///
    /// Parsing it returns an equal change.
    package var json: JSONObject {
        var members: [(name: String, value: JSONValue)] = [
            ("operation", .string(operation.rawValue)), ("schema", .string(schema)),
            ("table", .string(table)), ("key", .array(key.map { .string($0) })),
        ]
        if let database { members.append(("database", .string(database))) }
        for (name, image) in [("before", before), ("after", after)] {
            guard let image else { continue }
            members.append((name, .object(FieldValue.notation(fields: image.fields))))
            if image.completeness == .partial { members.append((name + "Completeness", "partial")) }
        }
        if let formerTakenBy {
            members.append(
                ("formerTakenBy", .object(FieldValue.notation(fields: formerTakenBy))))
        }
        if deviceID != nil || userID != nil {
            var origin: JSONObject = [:]
            origin["deviceID"] = deviceID.map { .string($0) }
            origin["userRecordName"] = userID.map { .string($0) }
            members.append(("origin", .object(origin)))
        }
        if let occurredAt { members.append(("occurredAt", .integer(occurredAt.milliseconds))) }
        if let version { members.append(("version", .integer(version))) }
        members.append(("position", .string(position)))
        if isSnapshot { members.append(("snapshot", true)) }
        return JSONObject(members)
    }

    /// Parses the posted form.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(Self.members)
        let word = try reader.require("operation", try reader.string("operation"))
        guard let operation = Operation(rawValue: word) else {
            throw reader.failure(
                "operation",
                "\"\(word.prefix(64))\" is unknown; allowed are create, update, delete, truncate")
        }
        self.init(
            operation, schema: try reader.require("schema", try reader.string("schema")),
            table: try reader.require("table", try reader.string("table")),
            key: try reader.strings("key") ?? [],
            position: try reader.require("position", try reader.string("position")))
        guard !position.isEmpty else { throw reader.failure("position", "must not be empty") }
        database = try reader.string("database")
        before = try Self.image("before", reader)
        after = try Self.image("after", reader)
        if let taker = try reader.reader("formerTakenBy") {
            formerTakenBy = try FieldValue.fields(notation: taker.object, path: taker.path)
        }
        if let origin = try reader.reader("origin") {
            try origin.allowOnly(["deviceID", "userRecordName"])
            deviceID = try origin.string("deviceID")
            userID = try origin.string("userRecordName")
        }
        occurredAt = try reader.moment("occurredAt")
        version = try reader.integer("version")
        isSnapshot = try reader.bool("snapshot") ?? false
    }

    private static func image(
        _ name: String, _ reader: JSONReader
    ) throws(JSONContractError) -> RecordImage? {
        let completeness: ImageCompleteness = try reader.choice("\(name)Completeness") ?? .full
        guard let inner = try reader.reader(name) else { return nil }
        return RecordImage(
            try FieldValue.fields(notation: inner.object, path: inner.path),
            completeness: completeness)
    }

    /// Returns the change as the mapping expects it.
    ///
    /// - Throws: ``JSONContractError`` with the place below `path`, if the change is invalid.
    func reported(path: String) throws(JSONContractError) -> ReportedChange {
        let operation: ChangeOperation
        switch self.operation {
        case .create: operation = .create
        case .update: operation = .update
        case .delete: operation = .delete
        case .truncate:
            throw JSONContractError(
                path: path.isEmpty ? "operation" : "\(path).operation",
                reason: ReportedChange.truncation)
        }
        var change = ReportedChange(
            operation, of: ReportedTable(database: database, schema: schema, name: table))
        func image(_ name: String, _ image: RecordImage?) -> ReportedImage? {
            image.map {
                ReportedImage(
                    fields: $0.fields, completeness: $0.completeness == .full ? .full : .partial,
                    path: path.isEmpty ? name : "\(path).\(name)")
            }
        }
        change.before = operation == .create ? nil : image("before", before)
        change.after = operation == .delete ? nil : image("after", after)
        guard change.after != nil || operation == .delete else {
            throw JSONContractError(
                path: path, reason: "\"after\" is required unless the operation is a deletion")
        }
        change.formerTakenBy = formerTakenBy
        change.keyColumns = key.isEmpty ? nil : key
        change.deviceID = deviceID
        change.userID = userID
        change.occurredAt = occurredAt
        change.version = version
        change.key = (.position, position)
        change.isSnapshot = isSnapshot
        return change
    }
}

extension SourceItem {
    /// Reads the change that a follower posted.
    func followedRow() throws(JSONContractError) -> Reading {
        let reader = try self.reader()
        if let end = try SnapshotEnd(reader) { return .ended(end) }
        return .changes([try FollowedRow(reader).reported(path: path)])
    }
}
