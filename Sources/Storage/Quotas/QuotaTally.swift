import Synchronization

/// How often each quota was reached since the store was opened; upkeep shows it.
///
/// A lock: all is short.
package final class QuotaTally: Sendable {
    private let counts = Mutex<[Quota: UInt64]>([:])

    /// How often each was reached.
    package var reached: [Quota: UInt64] { counts.withLock { $0 } }

    /// Counts a refusal, or what else a quota led to.
    package func count(_ quota: Quota, _ times: UInt64 = 1) {
        counts.withLock { $0[quota, default: 0] += times }
    }
}

extension RelayStore {
    /// Runs `body`, and counts a quota that it ran into.
    func counted<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch StorageError.overQuota(let refusal) {
            quotaTally.count(refusal.quota)
            throw StorageError.overQuota(refusal)
        }
    }
}
