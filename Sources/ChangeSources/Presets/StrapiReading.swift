import RelayModel

/// Strapi webhooks, versions 3 to 5.
enum StrapiReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let event = try reader.string("event") ?? item.headers["X-Strapi-Event"]
        let word = try reader.require("event", event)
        let operation: ChangeOperation
        switch word {
        case "entry.create": operation = .create
        // Publishing changes an existing row.
        case "entry.update", "entry.publish", "entry.unpublish", "entry.draft-discard":
            operation = .update
        case "entry.delete": operation = .delete
        default: return .ignored("the event \"\(word.prefix(64))\" does not change an entry")
        }
        let model = try reader.require("model", try reader.string("model"))
        // In `api::order.order`, the part before the dot serves as the schema of `order`.
        let qualifier = try reader.string("uid").map { String($0.prefix { $0 != "." }) }
        let entry = try reader.require("entry", try reader.reader("entry"))
        var change = ReportedChange(
            operation, of: ReportedTable(schema: qualifier, name: model))
        var image = ReportedImage(
            fields: fields(entry), completeness: .full, path: entry.path)
        if word == "entry.unpublish" { leavePublished(&image) }
        if operation == .delete { change.before = image } else { change.after = image }
        change.occurredAt = reader.anyMoment("createdAt") ?? reader.anyMoment("created_at")
        let updatedAt = entry.anyText("updatedAt") ?? entry.anyText("updated_at")
        // Version 5 reports each row of a deleted document: the draft and the published one.
        change.isToldByParts = operation == .delete && entry.anyText("documentId") != nil
        if let id = entry.anyText("id"), let updatedAt {
            change.key = (.expression, "\(model);\(id);\(updatedAt);\(word)")
        }
        return .changes([change])
    }

    /// Marks a document as no longer published.
    ///
    /// Version 5 reports the published row as it was, without its relations. The remaining draft
    /// may have other values, so the image is partial.
    private static func leavePublished(_ image: inout ReportedImage) {
        for name in ["publishedAt", "published_at"] {
            guard let moment = image.fields[name], !moment.isNull else { continue }
            image.fields[name] = .null
            image.completeness = .partial
        }
    }

    private static func fields(_ entry: JSONReader) -> RecordFields {
        var fields = FieldValue.fields(plain: entry.object)
        for name in ["createdAt", "updatedAt", "publishedAt", "created_at", "updated_at"] {
            if let moment = entry.anyMoment(name) { fields[name] = .timestamp(moment) }
        }
        return fields
    }
}
