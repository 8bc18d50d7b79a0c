import DequeModule

/// A table of what came last: beyond its limit the oldest makes room.
struct RecentMemory<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let limit: Int
    private var values: [Key: (value: Value, turn: UInt64)] = [:]
    private var order: Deque<(key: Key, turn: UInt64)> = []
    private var turns: UInt64 = 0

    /// Remembers the last `limit` keys.
    init(limit: Int) {
        precondition(limit > 0)
        self.limit = limit
    }

    /// Whether nothing is remembered, so that nobody has to make a key.
    var isEmpty: Bool { values.isEmpty }

    /// Changes every value that is remembered.
    mutating func update(_ change: (Value) -> Value) {
        for key in values.keys {
            if let (value, turn) = values[key] { values[key] = (change(value), turn) }
        }
    }

    /// Whether a key is remembered; it stays so at least until half as many others as are
    /// remembered at most have come.
    mutating func keep(_ key: Key) -> Bool {
        guard let (value, turn) = values[key] else { return false }
        // The place that it leaves counts until it is the oldest: hence not at every turn.
        if turns - turn >= limit / 2 {
            values[key] = nil
            self[key] = value
        }
        return true
    }

    /// The value of a key; `nil` if none is remembered.
    ///
    /// A key that is set to `nil` keeps its turn among the oldest, so that nothing has to look for
    /// it there; if it comes back, it has another turn.
    subscript(_ key: Key) -> Value? {
        get { values[key]?.value }
        set {
            guard let newValue else {
                values[key] = nil
                return
            }
            if let turn = values[key]?.turn {
                values[key] = (newValue, turn)
                return
            }
            turns += 1
            values[key] = (newValue, turns)
            order.append((key, turns))
            guard order.count > limit, let oldest = order.popFirst(),
                values[oldest.key]?.turn == oldest.turn
            else { return }
            values[oldest.key] = nil
        }
    }
}
