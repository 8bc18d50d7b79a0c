/// The connections of a listener that wait for a request, and which of them goes first where others
/// need its place.
///
/// A pure value.
struct IdleConnections<ID: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let address: ClientAddress?
        let hasAsked: Bool
        /// How many began to wait before it.
        let turn: UInt64
    }

    private var entries: [ID: Entry] = [:]
    private var turn: UInt64 = 0

    /// Notes one that waits from now on.
    mutating func add(_ id: ID, from address: ClientAddress?, asked: Bool) {
        entries[id] = Entry(address: address, hasAsked: asked, turn: turn)
        turn += 1
    }

    /// Notes one that waits no more.
    mutating func remove(_ id: ID) { entries[id] = nil }

    /// The one that gives way to a newcomer from `address` who is refused otherwise; `nil` if there
    /// is none.
    ///
    /// Where the listener is full it is one of the address that has most: who holds many places
    /// loses them, and not who holds one. Who never asked goes before those who did, and who has
    /// waited longest first.
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
