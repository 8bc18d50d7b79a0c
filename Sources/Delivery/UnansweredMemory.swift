import DequeModule
import RelayModel

/// How often in a row the attempts of a delivery came to nothing without an answer of the gateway.
///
/// Only the back-off grows with it. It is not stored: a relay that starts again has new
/// connections, and begins with short waits.
struct UnansweredMemory: Sendable {
    private let limit: Int
    private var counts: [DeliveryID: UInt8] = [:]
    private var order: Deque<DeliveryID> = []

    /// Remembers `limit` deliveries.
    init(limit: Int = 65_536) {
        precondition(limit > 0)
        self.limit = limit
    }

    /// The count of a delivery; 0 if nothing is remembered.
    subscript(_ id: DeliveryID) -> Int {
        counts.isEmpty ? 0 : counts[id].map(Int.init) ?? 0
    }

    /// Counts an attempt that came to nothing.
    mutating func add(_ id: DeliveryID) {
        if let count = counts[id] {
            counts[id] = count < .max ? count + 1 : .max
            return
        }
        counts[id] = 1
        order.append(id)
        // What ended long ago is still in the order, and makes room first.
        if order.count > limit, let oldest = order.popFirst() { counts[oldest] = nil }
    }

    /// Forgets a delivery that was answered.
    mutating func remove(_ id: DeliveryID) {
        if !counts.isEmpty { counts[id] = nil }
    }
}
