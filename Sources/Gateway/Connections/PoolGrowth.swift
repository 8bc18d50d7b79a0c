/// Decides when a pool opens a further connection.
///
/// The first one is opened at once. Another one costs the gateway a handshake, and looks like an
/// attack if it is short-lived. So all connections must first have been full for a while.
struct PoolGrowth: Sendable, Hashable {
    /// How long all connections must have been full.
    static let patience = Duration.milliseconds(100)

    private var fullSince: MonotonicInstant?

    /// Returns whether to open another connection at `now`, when requests wait.
    ///
    /// Of at most `maximum` connections, `usable` take requests now or later, and `ramping` of
    /// these have not reached their full width.
    mutating func opens(
        usable: Int, ramping: Int = 0, maximum: Int, at now: MonotonicInstant
    ) -> Bool {
        guard usable > 0, ramping == 0 else {
            fullSince = nil
            return usable == 0
        }
        guard usable < maximum else { return false }
        guard let since = fullSince else {
            fullSince = now
            return false
        }
        guard now.duration(since: since) >= Self.patience else { return false }
        fullSince = nil
        return true
    }

    /// Notes that a connection has a free place, or that nothing waits.
    mutating func relax() {
        fullSince = nil
    }
}
