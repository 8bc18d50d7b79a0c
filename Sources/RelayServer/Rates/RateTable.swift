/// The rate at which something may happen: a token bucket, which fills steadily.
struct RateLimit: Sendable, Hashable {
    /// Tokens per second.
    var perSecond: Double
    /// The capacity of a bucket in tokens.
    var burst: Double

    /// Returns the time in which `tokens` come.
    func time(for tokens: Double) -> Duration {
        .nanoseconds(Int64(min(tokens / perSecond, 1e9) * 1e9))
    }
}

/// The token buckets of many keys; only buckets that are not full take memory.
///
/// It is a pure value; moments are durations since any fixed moment. A bucket is stored as the
/// moment at which it will be full again (the generic cell rate algorithm, ITU-T I.371). If there
/// are too many buckets, nearly full ones are dropped. A client that invents a million names gains
/// a token for each, but cannot free keys that are being refused.
struct RateTable<Key: Hashable & Sendable>: Sendable {
    private struct Bucket: Sendable {
        var fullAt: Duration
        /// The index of its key in ``keys``.
        var place: Int
    }

    private var buckets: [Key: Bucket] = [:]
    /// The keys in no particular order, so that random ones can be drawn.
    private var keys: [Key] = []
    private let capacity: Int
    private var lastSweep = Duration.zero
    private var draw: UInt64 = 0x9E37_79B9_7F4A_7C15

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// The number of stored buckets, some of which may be full since they were last checked.
    var count: Int { keys.count }

    /// Takes tokens, or takes none and returns the time after which they will be there.
    mutating func take(
        _ tokens: Double = 1, of key: Key, _ limit: RateLimit, at now: Duration
    ) -> Duration? {
        let full = max(buckets[key]?.fullAt ?? now, now) + limit.time(for: tokens)
        let excess = full - now - limit.time(for: limit.burst)
        guard excess <= .zero else { return excess }
        put(full, for: key, at: now)
        return nil
    }

    /// Returns whether tokens could be taken.
    func has(_ tokens: Double, for key: Key, _ limit: RateLimit, at now: Duration) -> Bool {
        guard let full = buckets[key]?.fullAt else { return tokens <= limit.burst }
        return max(full, now) + limit.time(for: tokens) <= now + limit.time(for: limit.burst)
    }

    /// Takes tokens even if they are not there.
    ///
    /// At most `owed` tokens are taken below zero, which must come before others can be taken.
    mutating func charge(
        _ tokens: Double, to key: Key, _ limit: RateLimit, owed: Double = 0, at now: Duration
    ) {
        let full = max(buckets[key]?.fullAt ?? now, now) + limit.time(for: tokens)
        put(min(full, now + limit.time(for: limit.burst + owed)), for: key, at: now)
    }

    /// Fills a bucket, which removes it.
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
        // Checking all buckets takes time in their number, so it is done at most once in a second.
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

    /// Returns a pseudorandom number below `bound`; predicting it has no use.
    private mutating func next(below bound: Int) -> Int {
        draw ^= draw << 13
        draw ^= draw >> 7
        draw ^= draw << 17
        return Int(draw % UInt64(bound))
    }
}
