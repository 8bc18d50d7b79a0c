import RelayModel

/// Appwrite webhooks: the body is the row, and a header has the event.
enum AppwriteReading {
    private static let header = "X-Appwrite-Webhook-Events"

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        guard let events = item.headers[header] else {
            throw JSONContractError(path: "header \(header)", reason: "is required")
        }
        guard let verb = verb(in: events) else {
            return .ignored("no event of a document or row among \"\(events.prefix(200))\"")
        }
        let collection = try reader.string("$collectionId")
        let tableID = try reader.string("$tableId")
        let table = ReportedTable(
            database: try reader.string("$databaseId"),
            name: try reader.require("$collectionId", collection ?? tableID))
        var change = ReportedChange(verb, of: table)
        let image = image(reader)
        if verb == .delete { change.before = image } else { change.after = image }
        change.userID = item.headers["X-Appwrite-Webhook-User-Id"].flatMap { $0.isEmpty ? nil : $0 }
        change.occurredAt = verb == .delete ? nil : reader.anyMoment("$updatedAt")
        change.readers = try readers(reader)
        if item.source.transportKey(item.headers) == nil, let id = reader.anyText("$id"),
            let updatedAt = reader.anyText("$updatedAt")
        {
            change.key = (.expression, "\(table.name);\(id);\(updatedAt);\(verb.rawValue)")
        }
        return .changes([change])
    }

    /// Returns the operation on a document or row.
    ///
    /// The header lists every wildcard form of one event, in no particular order.
    private static func verb(in events: String) -> ChangeOperation? {
        let all = events.split(separator: ",").map { event in
            event.filter { !$0.isWhitespace }.split(separator: ".")
        }
        // The wildcard form is tried first, because a document may be called `delete`.
        let general = all.filter { $0.dropLast().last == "*" && isKind($0.dropLast(2).last) }
        return (general + all).lazy.compactMap(operation).first
    }

    private static func isKind(_ part: Substring?) -> Bool {
        part == "documents" || part == "rows"
    }

    private static func operation(_ parts: [Substring]) -> ChangeOperation? {
        guard parts.contains(where: { isKind($0) }) else { return nil }
        switch parts.last {
        case "create": return .create
        case "update", "upsert": return .update
        case "delete": return .delete
        default: return nil
        }
    }

    /// Returns the row.
    ///
    /// The two times become dates; Appwrite's other system attributes stay as they are.
    private static func image(_ reader: JSONReader) -> ReportedImage {
        var fields = FieldValue.fields(plain: reader.object)
        for name in ["$createdAt", "$updatedAt"] {
            if let moment = reader.anyMoment(name) { fields[name] = .timestamp(moment) }
        }
        return ReportedImage(fields: fields, completeness: .full, path: reader.path)
    }

    /// Returns the names in `read("…")`: a user's ID, `team:…`, or `world` for everyone.
    ///
    /// The result is `nil` if the row has no permissions; then those of the collection apply.
    private static func readers(_ reader: JSONReader) throws(JSONContractError) -> [String]? {
        let permissions = try reader.strings("$permissions") ?? []
        let names = permissions.compactMap { permission -> String? in
            guard permission.hasPrefix("read(\""), permission.hasSuffix("\")") else { return nil }
            let role = permission.dropFirst(6).dropLast(2)
            if role == "any" || role == "users" { return "world" }
            guard role.hasPrefix("user:") else { return String(role) }
            return String(role.dropFirst(5).prefix { $0 != "/" })
        }
        return names.isEmpty ? nil : names
    }
}
