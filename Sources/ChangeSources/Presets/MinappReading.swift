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
        return .changes([change])
    }
}
