import RelayModel

/// Bodies without a preset, read by the mapping's ``BodyLayout``.
enum CustomReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        guard let layout = item.source.mapping.body else {
            throw item.failure("the source has no mapping.body")
        }
        let word = item.value(at: layout.operation)?.nameText
        guard let word, let operation = layout.operations[word.lowercased()] else {
            let allowed = layout.operations.keys.sorted().joined(separator: ", ")
            throw item.failure(
                word.map { "the operation \"\($0.prefix(64))\" is unknown; allowed are \(allowed)" }
                    ?? "the operation is missing; allowed are \(allowed)")
        }
        var change = ReportedChange(operation, of: try item.configuredTable())
        if operation != .create {
            change.before = try image(layout.before, item, .unsure)
        }
        if operation != .delete {
            change.after = try image(
                layout.after, item, layout.afterCompleteness == .full ? .full : .partial)
        }
        if operation == .delete, change.before == nil {
            // Some senders put the deleted row in the place of the new one.
            change.before = try image(layout.after, item, .unsure)
        }
        guard change.judged != nil else {
            let place = operation == .delete ? layout.before ?? layout.after : layout.after
            throw item.failure("there is no row at \(place?.description ?? "mapping.body.after")")
        }
        return .changes([change])
    }

    private static func image(
        _ pointer: JSONPointer?, _ item: SourceItem, _ completeness: ReportedImage.Completeness
    ) throws(JSONContractError) -> ReportedImage? {
        guard let pointer, let json = pointer.value(in: item.value), json != .null else {
            return nil
        }
        let path = item.path + pointer.description
        let reader = try JSONReader(json, path: path)
        return ReportedImage(
            fields: FieldValue.fields(plain: reader.object), completeness: completeness, path: path)
    }
}

extension ReportedChange {
    /// The row from which the change is judged.
    var judged: ReportedImage? { operation == .delete ? before : after }
}
