import DequeModule

/// A table of the most recent keys, in which the oldest makes room beyond the limit.
struct RecentMemory<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let limit: Int
    private var values: [Key: (value: Value, turn: UInt64)] = [:]
    private var order: Deque<(key: Key, turn: UInt64)> = []
    private var turns: UInt64 = 0

    /// Creates a table of the last `limit` keys.
    init(limit: Int) {
        precondition(limit > 0)
        self.limit = limit
    }

    /// Whether the table is empty, so that callers need not build a key.
    var isEmpty: Bool { values.isEmpty }

    /// Changes every value in the table.
    mutating func update(_ change: (Value) -> Value) {
        for key in values.keys {
            if let (value, turn) = values[key] { values[key] = (change(value), turn) }
        }
    }

    /// Returns whether a key is in the table, and keeps it there until at least `limit / 2` more
    /// keys have come.
    mutating func keep(_ key: Key) -> Bool {
        guard let (value, turn) = values[key] else { return false }
        // The old turn stays in `order` until it is the oldest, so a key is not moved on every
        // call.
        if turns - turn >= limit / 2 {
            values[key] = nil
            self[key] = value
        }
        return true
    }

    /// The value of a key, or `nil` if there is none.
    ///
    /// Setting a key to `nil` leaves its turn in `order`, to avoid searching for it. If the key
    /// comes back, it gets another turn.
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
