import RelayModel

/// The reason why nothing is shipped, if the destination itself did not fail.
struct ShippingFailure: Error, CustomStringConvertible {
    let description: String

    /// Why a chain ends that two relays ship.
    static let forked = "another relay, on a copy of the store, ships the same chain"

    /// The place has the note of another store.
    static func foreign(_ note: [UInt8], _ place: String) -> ShippingFailure {
        let words = String(decoding: note, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        let owner = words.count == 4 ? "the store \(words[3])" : "something else"
        return ShippingFailure(
            description: "\(place) holds the backups of \(owner): name another place in "
                + "backup.url, and keep that one to restore from")
    }

    /// The place had the note of the store, and has it no longer.
    static func noted(missingAt place: String) -> ShippingFailure {
        ShippingFailure(
            description: "\(place) no longer says whose backups it holds: mount the disk that it "
                + "is on; if somebody emptied it, a new copy is made after ten minutes")
    }
}

/// For how long a place has had no note of the store that it belongs to.
struct NoteAbsence: Sendable {
    /// The time in which a disk can be mounted again.
    static let patience = Duration.seconds(600)

    private var since: Timestamp?

    /// Returns whether the note has been missing for so long that somebody must have removed it.
    mutating func isLong(at now: Timestamp) -> Bool {
        // The clock may have been set back.
        let since = min(since ?? now, now)
        self.since = since
        guard now.duration(since: since) >= Self.patience else { return false }
        end()
        return true
    }

    /// The note is there.
    mutating func end() { since = nil }
}
