import RelayModel

/// Minapp trigger webhooks: the claims of the token are the row; the table is the source's.
enum MinappReading {
    private static let header = "X-Hydrogen-Trigger-Event"

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let operation: ChangeOperation
        switch item.headers[header]?.lowercased() {
        case "on_create": operation = .create
        case "on_update": operation = .update
        case "on_delete": operation = .delete
        default:
            throw JSONContractError(
                path: "header \(header)", reason: "must be on_create, on_update or on_delete")
        }
        var change = ReportedChange(operation, of: try item.configuredTable())
        let image = ReportedImage(
            fields: FieldValue.fields(plain: reader.object), completeness: .full,
            path: reader.path)
        if operation == .delete { change.before = image } else { change.after = image }
        // Whole seconds since 1970.
        if case .integer(let seconds)? = reader.value("updated_at") {
            change.occurredAt = Timestamp(seconds: seconds).plausible
        }
        change.readers = try readers(reader)
        return .changes([change])
    }

    /// Whom the row lets read it: the IDs of users, `gid:…`, or `world` for anybody.
    ///
    /// Nobody where it lets none; `nil` where the row does not say.
    private static func readers(_ reader: JSONReader) throws(JSONContractError) -> [String]? {
        // Triggers and events call it so, and the answers of some calls have no underscore.
        let name = reader.value("_read_perm") == nil ? "read_perm" : "_read_perm"
        return try reader.strings(name)?.map { permission in
            guard permission.hasPrefix("user:") else { return permission }
            let user = permission.dropFirst(5)
            return user == "*" || user == "anonymous" ? "world" : String(user)
        }
    }
}
