import RelayModel
import Storage

/// The data that one request needs about what it keeps, read once, and the zones to update, written
/// once each.
///
/// No other request writes meanwhile. On PostgreSQL each query is a round trip, and updating the
/// same row again walks over the versions that the transaction made before.
struct KeptTogether {
    /// The identity of a zone, compared byte by byte as the engine does.
    private struct Zone: Hashable {
        let place: RecordPlace
        let zoneID: ZoneID
    }

    /// The kept records of the next changes, if they were looked up together.
    var records: KnownRecords?
    /// An upper bound of what all changes add; `nil` if there is none.
    private let most: Growth?
    /// Whether the container has room for `most`; `nil` until it is known.
    private var roomForAll: Bool?
    /// The zones in which something was written, and which therefore exist.
    private var zones: Set<Zone> = []
    /// The last position of each zone that has several changes and is not updated to it yet.
    private var last: [Zone: (rows: ShadowRows, position: LogPosition)] = [:]

    init(_ changes: [PreparedChange]) {
        // A record that moved may have more content than its change says.
        guard changes.allSatisfy({ $0.change.movedFrom == nil }) else {
            most = nil
            return
        }
        let bytes = changes.reduce(0) { $0 + ShadowRecord.bytesOfRow + $1.body.utf8.count }
        most = Growth(number: changes.count, bytes: bytes)
    }

    /// Returns whether the container has room for everything that the request can keep, so that no
    /// exact calculation for each record is needed.
    mutating func hasRoomForAll(by ledger: QuotaLedger) throws -> Bool {
        if let roomForAll { return roomForAll }
        guard let most else { return false }
        let hasRoom = try ledger.refusal(of: .records, growingBy: most) == nil
        roomForAll = hasRoom
        return hasRoom
    }

    /// Returns whether a zone exists or may be created.
    func hasRoom(
        for zoneID: ZoneID, _ rows: ShadowRows, in commit: OpenCommit
    ) throws -> Bool {
        if zones.contains(Zone(place: rows.place, zoneID: zoneID)) { return true }
        return try rows.refusal(of: zoneID, in: commit) == nil
    }

    /// Records a change of a zone.
    ///
    /// The first change updates the zone's row at once, because queries for the zone must find it.
    /// Of the later ones, only the last is written, at the end.
    mutating func note(
        _ zoneID: ZoneID, _ rows: ShadowRows, at position: LogPosition, in db: Database
    ) throws {
        let zone = Zone(place: rows.place, zoneID: zoneID)
        guard zones.insert(zone).inserted else { return last[zone] = (rows, position) }
        try rows.touch(zoneID, at: position, in: db)
    }

    /// Updates the zones that are not up to date, at the end of the request.
    func end(in db: Database) throws {
        for (zone, change) in last {
            try change.rows.touch(zone.zoneID, at: change.position, in: db)
        }
    }
}
