import RelayModel
import Storage

/// What one request has to know of what it keeps, asked once, and noted of each zone once.
///
/// Nobody else writes meanwhile. Each question would be waited for on PostgreSQL, where moreover
/// a row that is written again walks over what the transaction made of it before.
struct KeptTogether {
    /// Names a zone, byte by byte as the engine does.
    private struct Zone: Hashable {
        let place: RecordPlace
        let zoneID: ZoneID
    }

    /// What is kept of the records of the next changes, where they were asked for together.
    var records: KnownRecords?
    /// No less than all changes may add; `nil` where nobody can say.
    private let most: Growth?
    /// Whether the container has room for all of that; `nil` until it is asked.
    private var roomForAll: Bool?
    /// The zones in which something was written, and are there.
    private var zones: Set<Zone> = []
    /// Where the last of several changes of a zone stands, which is not noted there yet.
    private var last: [Zone: (rows: ShadowRows, position: LogPosition)] = [:]

    init(_ changes: [PreparedChange]) {
        // Of a record that moved there may be more than its change says.
        guard changes.allSatisfy({ $0.change.movedFrom == nil }) else {
            most = nil
            return
        }
        let bytes = changes.reduce(0) { $0 + ShadowRecord.bytesOfRow + $1.body.utf8.count }
        most = Growth(number: changes.count, bytes: bytes)
    }

    /// Whether the container has room for whatever the request keeps, so that nobody has to reckon
    /// with each of its records.
    mutating func hasRoomForAll(by ledger: QuotaLedger) throws -> Bool {
        if let roomForAll { return roomForAll }
        guard let most else { return false }
        let hasRoom = try ledger.refusal(of: .records, growingBy: most) == nil
        roomForAll = hasRoom
        return hasRoom
    }

    /// Whether a zone is there, or may be.
    func hasRoom(
        for zoneID: ZoneID, _ rows: ShadowRows, in commit: OpenCommit
    ) throws -> Bool {
        if zones.contains(Zone(place: rows.place, zoneID: zoneID)) { return true }
        return try rows.refusal(of: zoneID, in: commit) == nil
    }

    /// Notes the last change of a zone: the first one at once, because whoever asks for the zone
    /// then has to find it, and of all others the last.
    mutating func note(
        _ zoneID: ZoneID, _ rows: ShadowRows, at position: LogPosition, in db: Database
    ) throws {
        let zone = Zone(place: rows.place, zoneID: zoneID)
        guard zones.insert(zone).inserted else { return last[zone] = (rows, position) }
        try rows.touch(zoneID, at: position, in: db)
    }

    /// Notes what is not noted yet, at the end of the request.
    func end(in db: Database) throws {
        for (zone, change) in last {
            try change.rows.touch(zone.zoneID, at: change.position, in: db)
        }
    }
}
