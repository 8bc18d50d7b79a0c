import RelayModel

/// Where the last changes of zones stand that are not noted there yet; it belongs to one request.
///
/// A zone's row is written once for all of them: on PostgreSQL whoever writes a row again walks
/// over what the same transaction made of it before.
final class ZoneNotes {
    private var last: [ZoneID: LogPosition] = [:]

    /// Remembers the last change of a zone.
    func note(_ zoneID: ZoneID, at position: LogPosition) { last[zoneID] = position }

    /// Forgets what is remembered.
    func forget() { last = [:] }

    /// Notes what is remembered in the zones, of which a default one comes into being by that.
    func end(_ rows: ShadowRows, in db: Database) throws {
        for (zoneID, position) in last { try rows.touch(zoneID, at: position, in: db) }
        forget()
    }
}
