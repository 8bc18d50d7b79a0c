import RelayModel

/// Supabase database webhooks: a trigger posts both whole rows, without an ID or a time.
enum SupabaseReading {
    private static let operations: [String: ChangeOperation] = [
        "insert": .create, "update": .update, "delete": .delete,
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let operation = try reader.operation("type", operations)
        let table = try reader.require("table", try reader.string("table"))
        var change = ReportedChange(
            operation, of: ReportedTable(schema: try reader.string("schema"), name: table))
        if operation != .create { change.before = try reader.row("old_record", .full) }
        if operation != .delete { change.after = try reader.row("record", .full) }
        if operation == .delete { _ = try reader.require("old_record", change.before) }
        if operation != .delete { _ = try reader.require("record", change.after) }
        return .changes([change])
    }
}
