#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// Wakes a thread that waits for a server.
package final class PostgresWake: Sendable {
    let descriptor: Int32

    /// Creates a wake; `nil` if the process has no file descriptor left.
    package init?() {
        descriptor = cpq_wake_create()
        guard descriptor >= 0 else { return nil }
    }

    deinit {
        if descriptor >= 0 { cpq_wake_close(descriptor) }
    }

    /// Ends the current wait, or else the next one.
    package func signal() { cpq_wake_signal(descriptor) }

    /// Waits for a signal, for `socket` to become readable or writable as requested, or for `time`,
    /// at most a minute.
    ///
    /// - Returns: Whether it was signalled.
    @discardableResult package func wait(
        socket: Int32 = -1, toRead: Bool = false, toWrite: Bool = false, for time: Duration
    ) -> Bool {
        let parts = time.components
        let milliseconds = parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
        let happened = cpq_wait(
            socket, toRead ? 1 : 0, toWrite ? 1 : 0, descriptor,
            Int32(min(max(milliseconds, 0), 60_000)))
        return happened & Int32(CPQ_WOKEN) != 0
    }
}
