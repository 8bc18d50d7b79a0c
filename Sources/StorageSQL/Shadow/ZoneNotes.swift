import RelayModel

/// The last changed positions of zones that are not written to the zones' rows yet; it belongs to
/// one request.
///
/// Each zone's row is written once for all changes, because on PostgreSQL updating the same row
/// again walks over the versions that the transaction made before.
final class ZoneNotes {
    private var last: [ZoneID: LogPosition] = [:]

    /// Remembers the last change of a zone.
    func note(_ zoneID: ZoneID, at position: LogPosition) { last[zoneID] = position }

    /// Discards what is remembered.
    func forget() { last = [:] }

    /// Writes what is remembered to the zones' rows.
    ///
    /// A default zone is created by this.
    func end(_ rows: ShadowRows, in db: Database) throws {
        for (zoneID, position) in last { try rows.touch(zoneID, at: position, in: db) }
        forget()
    }
}
