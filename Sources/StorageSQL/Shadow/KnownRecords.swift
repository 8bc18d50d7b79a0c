import RelayModel
import Storage

/// What is kept of the records of some changes of one request, asked of the engine at once.
///
/// Nobody else writes meanwhile. What the request itself writes of a record is not heard here: so
/// each is told once, and then asked for in its turn.
struct KnownRecords {
    private var records: [RecordAddress: [ShadowRecord]] = [:]

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
        let found = try Row.fetchAlls(
            try db.cachedStatement(sql: ShadowRows.namedStatement),
            arguments: asked.map(\.arguments))
        for (index, rows) in found.enumerated() {
            // One that cannot be read is told of where its turn comes, if it does.
            let read = try? rows.map { try ScannedRecord(row: $0).record }
            records[asked[index].address] = read
        }
    }

    /// The kept records with the name of what a change changes, marks of deleted ones included;
    /// `nil` if it is not known.
    mutating func take(_ change: RecordChange) -> [ShadowRecord]? {
        records.removeValue(forKey: Self.address(of: change))
    }

    private static func address(of change: RecordChange) -> RecordAddress {
        RecordAddress(change.recordID, database: change.database, owner: change.owner)
    }
}
