import RelayModel
import Storage

/// The kept records of some changes of one request, fetched from the engine at once.
///
/// No other request writes meanwhile. Writes of the request itself are not reflected here, so each
/// record is returned once, and must be looked up individually after that.
struct KnownRecords {
    /// The rows found.
    ///
    /// They are decoded only when needed, because the decoded values of a large record take many
    /// times as much memory as its row.
    private var found: [RecordAddress: [Row]] = [:]

    /// The maximum number of changes looked up together.
    ///
    /// It is low because a record may be as large as a request.
    static let mostTogether = 16

    /// Looks up the records of `changes`, whose types must be kept.
    init(
        of changes: [RecordChange], in container: StoredContainer, _ db: Database
    ) throws {
        var seen: Set<RecordAddress> = []
        var asked: [(address: RecordAddress, arguments: StatementArguments)] = []
        for change in changes {
            let address = Self.address(of: change)
            guard seen.insert(address).inserted else { continue }
            let place = RecordPlace(
                container: container.key, database: change.database, owner: change.owner)
            let rows = ShadowRows(place: place, container: container)
            asked.append((address, rows.name(change.recordID)))
        }
        let rows = try Row.fetchAlls(
            try db.cachedStatement(sql: ShadowRows.namedStatement),
            arguments: asked.map(\.arguments))
        for (one, rows) in zip(asked, rows) { found[one.address] = rows }
    }

    /// Returns and removes the kept records with the name of the record that a change changes,
    /// including marks of deleted ones, or returns `nil` if they are not known.
    mutating func take(_ change: RecordChange) throws -> [ShadowRecord]? {
        try found.removeValue(forKey: Self.address(of: change))?.map {
            try ScannedRecord(row: $0).record
        }
    }

    private static func address(of change: RecordChange) -> RecordAddress {
        RecordAddress(change.recordID, database: change.database, owner: change.owner)
    }
}
