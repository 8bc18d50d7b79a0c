/// When a pool opens a further connection.
///
/// The first is opened at once. Another one costs the gateway a handshake and looks like an attack
/// if it is short-lived, so all must have been full for a while first.
struct PoolGrowth: Sendable, Hashable {
    /// How long all connections must have been full.
    static let patience = Duration.milliseconds(100)

    private var fullSince: MonotonicInstant?

    /// Whether to open another connection at `now`, when requests wait and of the `maximum`
    /// connections `usable` take requests now or later, `ramping` of them not yet at full width.
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

    /// Some connection has a place free, or nothing waits.
    mutating func relax() {
        fullSince = nil
    }
}
