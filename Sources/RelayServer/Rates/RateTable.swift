/// How often something may happen: a bucket of tokens, which fills at a steady rate.
struct RateLimit: Sendable, Hashable {
    /// Tokens in a second.
    var perSecond: Double
    /// Tokens that a bucket holds.
    var burst: Double

    /// The time in which one token comes.
    func time(for tokens: Double) -> Duration {
        .nanoseconds(Int64(min(tokens / perSecond, 1e9) * 1e9))
    }
}

/// Buckets of many, of which only those that are not full take room.
///
/// A pure value; moments are durations since any fixed one. Of a bucket there is only the moment at
/// which it will be full again (the generic cell rate algorithm, ITU-T I.371). Where there are more
/// buckets than room, those go that are nearest to full: whoever makes up a million names gains a
/// token for each, and takes none from those who are refused.
struct RateTable<Key: Hashable & Sendable>: Sendable {
    private struct Bucket: Sendable {
        var fullAt: Duration
        /// Where its key stands in ``keys``.
        var place: Int
    }

    private var buckets: [Key: Bucket] = [:]
    /// The keys in no order, so that any of them can be drawn.
    private var keys: [Key] = []
    private let capacity: Int
    private var lastSweep = Duration.zero
    private var draw: UInt64 = 0x9E37_79B9_7F4A_7C15

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// How many buckets are not full, or were not when it was last looked.
    var count: Int { keys.count }

    /// Takes tokens, or takes none and says after which time they will be there.
    mutating func take(
        _ tokens: Double = 1, of key: Key, _ limit: RateLimit, at now: Duration
    ) -> Duration? {
        let full = max(buckets[key]?.fullAt ?? now, now) + limit.time(for: tokens)
        let excess = full - now - limit.time(for: limit.burst)
        guard excess <= .zero else { return excess }
        put(full, for: key, at: now)
        return nil
    }

    /// Whether tokens could be taken.
    func has(_ tokens: Double, for key: Key, _ limit: RateLimit, at now: Duration) -> Bool {
        guard let full = buckets[key]?.fullAt else { return tokens <= limit.burst }
        return max(full, now) + limit.time(for: tokens) <= now + limit.time(for: limit.burst)
    }

    /// Takes tokens whether they are there or not.
    ///
    /// Of those that are not there, as many as `owed` must come before any can be taken again.
    mutating func charge(
        _ tokens: Double, to key: Key, _ limit: RateLimit, owed: Double = 0, at now: Duration
    ) {
        let full = max(buckets[key]?.fullAt ?? now, now) + limit.time(for: tokens)
        put(min(full, now + limit.time(for: limit.burst + owed)), for: key, at: now)
    }

    /// Fills a bucket.
    mutating func fill(_ key: Key) {
        guard let bucket = buckets.removeValue(forKey: key) else { return }
        let last = keys.removeLast()
        guard bucket.place < keys.count else { return }
        keys[bucket.place] = last
        buckets[last]?.place = bucket.place
    }

    private mutating func put(_ full: Duration, for key: Key, at now: Duration) {
        if buckets[key] != nil {
            buckets[key]?.fullAt = full
            return
        }
        if keys.count >= capacity { makeRoom(at: now) }
        buckets[key] = Bucket(fullAt: full, place: keys.count)
        keys.append(key)
    }

    private mutating func makeRoom(at now: Duration) {
        // To look at all of them costs as much as there are, and is done once in a second.
        if now - lastSweep >= .seconds(1) {
            lastSweep = now
            for key in keys where buckets[key].map({ $0.fullAt <= now }) ?? true { fill(key) }
        }
        guard keys.count >= capacity else { return }
        let drawn = (0..<8).map { _ in keys[next(below: keys.count)] }
        let fullest = drawn.min {
            (buckets[$0]?.fullAt ?? .zero) < (buckets[$1]?.fullAt ?? .zero)
        }
        if let fullest { fill(fullest) }
    }

    /// Some number below `bound`; nobody gains anything by foreseeing it.
    private mutating func next(below bound: Int) -> Int {
        draw ^= draw << 13
        draw ^= draw >> 7
        draw ^= draw << 17
        return Int(draw % UInt64(bound))
    }
}
