import RelayModel

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
        var others: Set<RecordType> = []
        for table in end.tables {
            let reported = ReportedTable(
                database: end.database, schema: table.schema, name: table.name)
            // A table whose name makes no record type has no records.
            guard !mapping.ignores(reported),
                let type = try? mapping.recordType(reported, path: "")
            else { continue }
            let isOrdered =
                mapping.order == .position && mapping.places(of: reported).version == nil
            if isOrdered { types.insert(type) } else { others.insert(type) }
        }
        types.subtract(others)
        guard !types.isEmpty else {
            return .ignored(reason: "no record type of the snapshot has the versions of its rows")
        }
        return .ended(EndedTypes(types: types, version: end.version))
    }
}
