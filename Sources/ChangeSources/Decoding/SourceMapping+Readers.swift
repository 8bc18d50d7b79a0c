import RelayModel

extension SourceMapping {
    /// Fills in the users who may read the record, or that they were not sent.
    func fillReaders(
        _ change: inout RecordChange, _ reported: ReportedChange, _ readers: ValuePlace?,
        _ item: SourceItem
    ) throws(JSONContractError) {
        change.readers = try readerNames(
            reported, readers, item, change.after?.fields ?? [:], change.before?.fields ?? [:])
        // An empty name is nobody's, and has a meaning of its own in kept records.
        if change.readers?.contains(where: \.isEmpty) ?? false {
            change.readers?.removeAll(where: \.isEmpty)
        }
        change.unnamedReaders = unnamed(readers, change, item)
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

    /// Returns what it means if a change names no readers: its row may have them in a part that was
    /// not sent.
    ///
    /// A null that was sent is no such part, except in what is left of a deleted row, where
    /// databases write null for columns that they do not know.
    private func unnamed(
        _ readers: ValuePlace?, _ change: RecordChange, _ item: SourceItem
    ) -> UnnamedReaders {
        guard change.readers == nil else { return .unsaid }
        let row = change.judgedImage
        let isSent: Bool
        switch readers {
        case .column(let name): isSent = row?.fields[name] != nil
        case .pointer(let pointer):
            isSent = item.pointed.value(at: pointer, in: item.value) != nil
        case .constant, .header, nil: return .unsaid
        }
        if row?.completeness == .full { return .sentNone }
        return isSent && change.operation != .delete ? .sentNone : .unsent
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
