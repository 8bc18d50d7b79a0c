import RelayModel

extension SourceMapping {
    /// Fills in the users who may read the record, or that they were not sent.
    func fillReaders(
        _ change: inout RecordChange, _ reported: ReportedChange, _ readers: ValuePlace?,
        _ item: SourceItem
    ) throws(JSONContractError) {
        change.readers = try readerNames(
            reported, readers, item, change.after?.fields ?? [:], change.before?.fields ?? [:])
        change.lacksReaders = change.readers == nil && lacks(readers, change, item)
    }

    /// Throws if a whole row lacks the column that the mapping names for its readers.
    ///
    /// If the column's name is mistyped, everyone would learn of the change.
    private func requireColumn(
        of readers: ValuePlace, _ reported: ReportedChange, _ item: SourceItem
    ) throws(JSONContractError) {
        guard case .column(let name) = readers, item.source.preset.tellsWholeRows,
            let image = reported.after, image.completeness == .full, image.fields[name] == nil
        else { return }
        throw JSONContractError(
            path: readers.path(in: image.path),
            reason: "the row lacks this column, which the mapping names for its readers; if the "
                + "table has no readers, set \"readers\": null for it in the mapping's \"tables\"")
    }

    /// Returns whether the row of a change that names no readers may have them in a part that was
    /// not sent.
    ///
    /// A null that was sent is no such part, except in what is left of a deleted row, where
    /// databases write null for columns that they do not know.
    private func lacks(
        _ readers: ValuePlace?, _ change: RecordChange, _ item: SourceItem
    ) -> Bool {
        let row = change.judgedImage
        guard row?.completeness != .full else { return false }
        let isDeleted = change.operation == .delete
        switch readers {
        case .column(let name): return isDeleted || row?.fields[name] == nil
        case .pointer(let pointer):
            return isDeleted || item.pointed.value(at: pointer, in: item.value) == nil
        case .constant, .header, nil: return false
        }
    }

    private func readerNames(
        _ reported: ReportedChange, _ readers: ValuePlace?, _ item: SourceItem,
        _ after: RecordFields, _ before: RecordFields
    ) throws(JSONContractError) -> [String]? {
        guard let readers else { return reported.readers }
        switch item.value(at: readers, fields: after, before) {
        case nil:
            try requireColumn(of: readers, reported, item)
            return reported.readers
        case .string(let name)?: return [name]
        case .list(let values)?:
            let names = values.compactMap(item.nameText)
            guard names.count == values.count else { break }
            return names
        case .set(let values)?:
            let names = values.compactMap(item.nameText)
            guard names.count == values.count else { break }
            return names.sorted()
        default: break
        }
        throw item.failure("readers are neither a name nor a list of names")
    }
}
