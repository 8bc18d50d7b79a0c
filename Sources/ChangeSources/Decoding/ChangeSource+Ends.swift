package import RelayModel

/// The end of a snapshot, with record types in the place of tables.
package struct EndedTypes: Sendable, Hashable {
    /// The record types of the tables that were read.
    package let types: Set<RecordType>
    /// The version of all records of the snapshot.
    package let version: Int64
}

extension ChangeSource {
    /// Decodes the end of a snapshot from a follower within the relay, as if it had been posted.
    package func decode(_ end: SnapshotEnd) -> DecodedBatch {
        DecodedBatch(items: [item(of: end)])
    }

    /// Returns the record types of the tables that were read completely.
    ///
    /// If the mapping takes the version of a table's rows from a column, or takes no version, a
    /// record's version does not show whether the snapshot contained the record. Then nothing is
    /// deleted of the type. That is so even if the end does not name that table: a long end comes
    /// in parts, and a table may have left the publication.
    func item(of end: SnapshotEnd) -> DecodedItem {
        var types: Set<RecordType> = []
        var others = typesWithVersionColumns(end.database)
        others.formUnion(end.incomplete.compactMap { recordType(of: $0, end.database)?.type })
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

    /// Returns the record types of tables that the mapping names and that have a version column,
    /// whether or not the end names these tables.
    private func typesWithVersionColumns(_ database: String?) -> Set<RecordType> {
        var types: Set<RecordType> = []
        for name in Set(mapping.tables.keys).union(mapping.recordTypes.keys) {
            let words = name.split(separator: ".", maxSplits: 1).map(String.init)
            let table = ReportedTable(
                database: database, schema: words.count > 1 ? words[0] : nil,
                name: words.last ?? name)
            guard mapping.places(of: table).version != nil,
                let type = try? mapping.recordType(table, path: "")
            else { continue }
            types.insert(type)
        }
        return types
    }

    /// Returns the record type of a table, and whether its rows have the versions of their source.
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
