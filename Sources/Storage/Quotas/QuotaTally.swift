import Synchronization

/// How often each quota was reached since the store was opened; upkeep shows it.
///
/// A lock: all is short.
package final class QuotaTally: Sendable {
    private let counts = Mutex<[Quota: UInt64]>([:])

    /// Counts from 0.
    package init() {}

    /// How often each was reached.
    package var reached: [Quota: UInt64] { counts.withLock { $0 } }

    /// Counts a refusal, or what else a quota led to.
    package func count(_ quota: Quota, _ times: UInt64 = 1) {
        counts.withLock { $0[quota, default: 0] += times }
    }
}
