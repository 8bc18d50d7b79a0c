import RelayModel
import Storage

/// What is kept of the records of some changes of one request, asked of the engine at once.
///
/// Nobody else writes meanwhile. What the request itself writes of a record is not heard here: so
/// each is told once, and then asked for in its turn.
struct KnownRecords {
    /// The rows, which are read where their turn comes: as values a record of a megabyte takes many
    /// times as much.
    private var found: [RecordAddress: [Row]] = [:]

    /// How many changes are looked at together: a record may be as large as a request.
    static let mostTogether = 16

    /// Looks for the records of `changes`, which are of types that are kept.
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

    /// The kept records with the name of what a change changes, marks of deleted ones included;
    /// `nil` if it is not known.
    mutating func take(_ change: RecordChange) throws -> [ShadowRecord]? {
        try found.removeValue(forKey: Self.address(of: change))?.map {
            try ScannedRecord(row: $0).record
        }
    }

    private static func address(of change: RecordChange) -> RecordAddress {
        RecordAddress(change.recordID, database: change.database, owner: change.owner)
    }
}
