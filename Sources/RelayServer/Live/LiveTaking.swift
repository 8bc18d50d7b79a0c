import NIOCore

/// Whether a client takes what it is sent, however slowly.
///
/// Frames wait in the connection's buffer. A slow client may read from that buffer for a long time
/// before the connection becomes writable again.
struct LiveTaking {
    /// When the connection last took something.
    private var last: NIODeadline
    /// The bytes that waited in the connection at the last look.
    private var waiting = 0

    init(at now: NIODeadline) {
        last = now
    }

    /// Notes that the connection was handed more, because it had room.
    mutating func take(at now: NIODeadline) { last = now }

    /// Notes how many bytes wait in the connection; returns whether more waited before.
    mutating func look(at now: NIODeadline, _ bytes: Int) -> Bool {
        defer { waiting = bytes }
        guard bytes < waiting else { return false }
        last = now
        return true
    }

    /// Forgets how much waits, because it does not matter now.
    mutating func forget() { waiting = 0 }

    /// Returns whether nothing was taken for so long that the client must have stopped reading.
    func isStuck(at now: NIODeadline) -> Bool { now - last > TimeAmount(LiveTimes.drain) }
}
