import NIOCore

/// Whether a client takes what it is sent, however slowly.
///
/// What has gone to the connection waits there: a client that reads a little now and then takes of
/// that for a long time before more is asked for.
struct LiveTaking {
    /// When the connection last took something.
    private var last: NIODeadline
    /// What waited in it when it was looked at before.
    private var waiting = 0

    init(at now: NIODeadline) {
        last = now
    }

    /// Notes that more went to the connection, because it had room.
    mutating func take(at now: NIODeadline) { last = now }

    /// Notes how much waits in the connection, and says whether it was more before.
    mutating func look(at now: NIODeadline, _ bytes: Int) -> Bool {
        defer { waiting = bytes }
        guard bytes < waiting else { return false }
        last = now
        return true
    }

    /// Notes that it is not known how much waits, and does not matter.
    mutating func forget() { waiting = 0 }

    /// Whether nothing was taken for so long that a client for whom something waits does not read.
    func isStuck(at now: NIODeadline) -> Bool { now - last > TimeAmount(LiveTimes.drain) }
}
