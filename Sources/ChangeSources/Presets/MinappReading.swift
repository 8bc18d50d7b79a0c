import RelayModel

/// Minapp trigger webhooks: the token's claims are the row, and the source's mapping names the
/// table.
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
        // In whole seconds since 1970.
        if case .integer(let seconds)? = reader.value("updated_at") {
            change.occurredAt = Timestamp(seconds: seconds).plausible
        }
        change.readers = try readers(reader)
        return .changes([change])
    }

    /// Returns the readers in the row's permissions: the IDs of users, `gid:…`, or `world` for
    /// everyone.
    ///
    /// The list is empty if nobody may read the row. The result is `nil` if the row has no
    /// permissions.
    private static func readers(_ reader: JSONReader) throws(JSONContractError) -> [String]? {
        // Triggers and events use this name. The answers of some API calls have no underscore.
        let name = reader.value("_read_perm") == nil ? "read_perm" : "_read_perm"
        return try reader.strings(name)?.map { permission in
            guard permission.hasPrefix("user:") else { return permission }
            let user = permission.dropFirst(5)
            return user == "*" || user == "anonymous" ? "world" : String(user)
        }
    }
}
