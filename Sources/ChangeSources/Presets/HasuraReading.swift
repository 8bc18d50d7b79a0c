import RelayModel

/// Hasura event triggers.
enum HasuraReading {
    private static let operations: [String: ChangeOperation] = [
        "insert": .create, "update": .update, "delete": .delete,
        // Sent from the console for an existing row. Its state before is unknown.
        "manual": .update,
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let table = try reader.require("table", try reader.reader("table"))
        let event = try reader.require("event", try reader.reader("event"))
        let data = try event.require("data", try event.reader("data"))
        let operation = try event.operation("op", operations)
        var change = ReportedChange(
            operation,
            of: ReportedTable(
                schema: try table.string("schema"),
                name: try table.require("name", try table.string("name"))))
        if operation != .create { change.before = try data.row("old", .full) }
        if operation != .delete { change.after = try data.row("new", .full) }
        if operation == .delete { _ = try data.require("old", change.before) }
        if operation != .delete { _ = try data.require("new", change.after) }
        change.occurredAt = reader.anyMoment("created_at")
        if let session = (try? event.reader("session_variables")) ?? nil {
            change.deviceID = session.anyText("x-hasura-device-id")
            change.userID = session.anyText("x-hasura-user-id")
        }
        if let id = try reader.string("id"), !id.isEmpty { change.key = (.delivery, id) }
        return .changes([change])
    }
}
