package import RelayModel

/// The end of a snapshot in the words of the relay.
package struct EndedTypes: Sendable, Hashable {
    /// The record types of the tables that were read.
    package let types: Set<RecordType>
    /// The version of all records of the snapshot.
    package let version: Int64
}

extension ChangeSource {
    /// Reads the end of a snapshot from a follower within the relay, as if it had been posted.
    package func decode(_ end: SnapshotEnd) -> DecodedBatch {
        DecodedBatch(items: [item(of: end)])
    }

    /// Which record types have ended.
    ///
    /// Where a mapping takes the version of a table's rows from a column, or takes none, a record's
    /// version does not say whether the snapshot contained the record. Then nothing follows from
    /// the end.
    func item(of end: SnapshotEnd) -> DecodedItem {
        var types: Set<RecordType> = []
        var others = Set(end.incomplete.compactMap { recordType(of: $0, end.database)?.type })
        for table in end.tables {
            // A table whose name makes no record type has no records.
            guard let found = recordType(of: table, end.database) else { continue }
            if found.isOrdered { types.insert(found.type) } else { others.insert(found.type) }
        }
        types.subtract(others)
        guard !types.isEmpty else {
            return .ignored(
                reason: "no record type of the snapshot takes its versions from positions")
        }
        return .ended(EndedTypes(types: types, version: end.version))
    }

    /// The record type of a table, and whether its rows have the versions of their source.
    private func recordType(
        of table: SnapshotEnd.Table, _ database: String?
    ) -> (type: RecordType, isOrdered: Bool)? {
        let reported = ReportedTable(database: database, schema: table.schema, name: table.name)
        guard !mapping.ignores(reported),
            let type = try? mapping.recordType(reported, path: "")
        else { return nil }
        return (type, mapping.order == .position && mapping.places(of: reported).version == nil)
    }
}
