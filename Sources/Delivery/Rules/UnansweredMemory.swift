import RelayModel

/// The number of consecutive attempts of a delivery that ended without an answer of the gateway.
///
/// Only the back-off grows with it. It is not stored, because a relay that restarts has new
/// connections, and begins with short waits.
struct UnansweredMemory: Sendable {
    private var counts: RecentMemory<DeliveryID, UInt8>

    /// Creates a memory of `limit` deliveries.
    init(limit: Int = 65_536) {
        counts = RecentMemory(limit: limit)
    }

    /// The count of a delivery; 0 if nothing is remembered.
    subscript(_ id: DeliveryID) -> Int { Int(counts[id] ?? 0) }

    /// Counts an attempt that ended without an answer.
    mutating func add(_ id: DeliveryID) {
        let count = counts[id] ?? 0
        counts[id] = count < .max ? count + 1 : .max
    }

    /// Forgets a delivery that was answered.
    mutating func remove(_ id: DeliveryID) {
        counts[id] = nil
    }
}
