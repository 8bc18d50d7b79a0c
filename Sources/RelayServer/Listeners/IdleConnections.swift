/// The idle connections of a listener, which decides which of them is closed if others need its
/// place.
///
/// It is a pure value.
struct IdleConnections<ID: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let address: ClientAddress?
        let hasAsked: Bool
        /// The number of connections that became idle before it.
        let turn: UInt64
    }

    private var entries: [ID: Entry] = [:]
    private var turn: UInt64 = 0

    /// Notes that a connection is idle from now on.
    mutating func add(_ id: ID, from address: ClientAddress?, asked: Bool) {
        entries[id] = Entry(address: address, hasAsked: asked, turn: turn)
        turn += 1
    }

    /// Notes that a connection is no longer idle.
    mutating func remove(_ id: ID) { entries[id] = nil }

    /// Returns the connection to close for a new one from `address`; `nil` if there is none.
    ///
    /// If the listener is full, it is one of the address with the most idle connections, so that a
    /// client with many places loses them and not one with a single place. Connections without any
    /// request go before others, and the longest idle ones first.
    func next(for refusal: ConnectionCounts.Refusal, from address: ClientAddress?) -> ID? {
        let rivals = refusal == .address ? entries.filter { $0.value.address == address } : entries
        var counts: [ClientAddress?: Int] = [:]
        for entry in rivals.values { counts[entry.address, default: 0] += 1 }
        return rivals.min { first, second in
            let (one, other) = (first.value, second.value)
            let (few, many) = (counts[one.address] ?? 0, counts[other.address] ?? 0)
            if few != many { return few > many }
            return one.hasAsked == other.hasAsked ? one.turn < other.turn : !one.hasAsked
        }?.key
    }
}
