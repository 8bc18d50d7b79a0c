import RelayModel

/// The payloads of Airtable's webhooks, which a program fetches and posts, and the pings that
/// announce new payloads.
enum AirtableReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        if reader.object["webhook"] != nil, reader.object["changedTablesById"] == nil {
            return .ignored("a ping has no changes; fetch the payloads and post them")
        }
        if let code = reader.anyText("code"), reader.object["error"] != nil {
            throw reader.failure(
                "error", "Airtable answered with an error instead of a payload: \(code.prefix(64))")
        }
        var changes: [ReportedChange] = []
        for table in try members("createdTablesById", of: reader) {
            let inner = try JSONReader(
                table.value, path: reader.path(of: "createdTablesById.\(table.name)"))
            try read(created: "recordsById", inner, table.name, into: &changes)
        }
        for table in try members("changedTablesById", of: reader) {
            let inner = try JSONReader(
                table.value, path: reader.path(of: "changedTablesById.\(table.name)"))
            try read(records: inner, table.name, into: &changes)
            // If the webhook covers a single view, the changed records are under that view.
            for view in try members("changedViewsById", of: inner) {
                let shown = try JSONReader(
                    view.value, path: inner.path(of: "changedViewsById.\(view.name)"))
                try read(records: shown, table.name, into: &changes)
            }
        }
        guard changes.count <= Limits.maximumChangesPerRequest else {
            throw item.failure(
                "\(changes.count) changes; \(Limits.maximumChangesPerRequest) are allowed")
        }
        try complete(&changes, reader)
        return changes.isEmpty ? .ignored("no record changed") : .changes(changes)
    }

    /// Returns the tables or views in a member, whose names become part of the paths of everything
    /// in them.
    private static func members(
        _ name: String, of reader: JSONReader
    ) throws(JSONContractError) -> [(name: String, value: JSONValue)] {
        let members = try reader.reader(name)?.object.members ?? []
        guard members.allSatisfy({ $0.name.utf8.count <= Limits.maximumNameBytes }) else {
            throw reader.failure(
                name, "a name in it has more than \(Limits.maximumNameBytes) bytes")
        }
        return members
    }

    private static func change(
        _ operation: ChangeOperation, _ table: String, _ name: String
    ) -> ReportedChange {
        var change = ReportedChange(operation, of: ReportedTable(name: table))
        change.recordName = name
        return change
    }

    private static func read(
        records reader: JSONReader, _ table: String, into changes: inout [ReportedChange]
    ) throws(JSONContractError) {
        try read(created: "createdRecordsById", reader, table, into: &changes)
        try read(changed: reader, table, into: &changes)
        for name in try reader.strings("destroyedRecordIds") ?? [] {
            changes.append(change(.delete, table, name))
        }
    }

    private static func read(
        created member: String, _ reader: JSONReader, _ table: String,
        into changes: inout [ReportedChange]
    ) throws(JSONContractError) {
        for record in try reader.reader(member)?.object.members ?? [] {
            let inner = try JSONReader(
                record.value, path: reader.path(of: "\(member).\(record.name)"))
            var change = change(.create, table, record.name)
            change.after =
                try inner.row("cellValuesByFieldId", .full)
                ?? ReportedImage(fields: [:], completeness: .full, path: inner.path)
            changes.append(change)
        }
    }

    /// Reads changed records.
    ///
    /// Unchanged cells are included only if the webhook was set up to send them.
    private static func read(
        changed reader: JSONReader, _ table: String, into changes: inout [ReportedChange]
    ) throws(JSONContractError) {
        for record in try reader.reader("changedRecordsById")?.object.members ?? [] {
            let inner = try JSONReader(
                record.value, path: reader.path(of: "changedRecordsById.\(record.name)"))
            let current = try inner.require("current", try inner.reader("current"))
            let unchanged = try inner.reader("unchanged")?.row("cellValuesByFieldId", .full)
            var change = change(.update, table, record.name)
            var after =
                try current.row("cellValuesByFieldId", .partial)
                ?? ReportedImage(fields: [:], completeness: .partial, path: current.path)
            change.changedKeys = after.fields.keys.sorted()
            var before = try inner.reader("previous")?.row("cellValuesByFieldId", .partial)
            if let unchanged {
                after.fields.merge(unchanged.fields) { own, _ in own }
                after.completeness = .full
                before?.fields.merge(unchanged.fields) { own, _ in own }
                before?.completeness = .full
            }
            change.after = after
            change.before = before
            changes.append(change)
        }
    }

    /// Adds to all changes what the payload states once for all of them.
    private static func complete(
        _ changes: inout [ReportedChange], _ reader: JSONReader
    ) throws(JSONContractError) {
        let time = reader.anyMoment("timestamp")
        let number = try reader.integer("baseTransactionNumber")
        let user = try reader.reader("actionMetadata")?.reader("sourceMetadata")?.reader("user")?
            .anyText("id")
        for index in changes.indices {
            changes[index].occurredAt = time
            changes[index].userID = user
            changes[index].version = number
            guard let number else { continue }
            changes[index].key = (.position, String(number))
            changes[index].sharesPosition = true
        }
    }
}
