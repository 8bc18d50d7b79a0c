import Synchronization

/// Counts how often each quota was reached since the store was opened, for upkeep's report.
///
/// A lock suffices, because every access is short.
package final class QuotaTally: Sendable {
    private let counts = Mutex<[Quota: UInt64]>([:])

    /// Creates a tally of zero.
    package init() {}

    /// How often each quota was reached.
    package var reached: [Quota: UInt64] { counts.withLock { $0 } }

    /// Counts a refusal or another effect of a quota.
    package func count(_ quota: Quota, _ times: UInt64 = 1) {
        counts.withLock { $0[quota, default: 0] += times }
    }
}
