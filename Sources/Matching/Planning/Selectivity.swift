import RelayModel

/// Estimates how often a key is hit, from sampled changes if there are enough, otherwise by rules
/// of thumb.
///
/// Readers sample the keys of some changes, and writers take the samples over. A count-min sketch
/// keeps them in constant space; its error can only make a key look more frequent than it is.
struct Selectivity: ~Copyable {
    private var counters: [UInt16]
    private var samples: UInt32 = 0
    /// The number of samples by the plan of the changes' record type.
    private var planSamples: [UInt32] = []
    /// How often the counters have been halved since the start.
    private var halvings = 0

    private static let width = 1 << 14
    /// The number of sampled changes of a record type from which their evidence counts.
    static let enough: UInt32 = 128
    /// The number of samples at which the counters are halved, so that old samples lose weight.
    private static let many: UInt32 = 60_000

    init() {
        counters = [UInt16](repeating: 0, count: Self.width * 2)
    }

    /// The memory in bytes.
    var bytes: Int { counters.count * 2 }

    /// Adds the keys of one sampled change of a plan.
    mutating func observe(_ hashes: some Sequence<UInt32>, plan: Int) {
        for hash in hashes {
            let (first, second) = Self.places(hash)
            if counters[first] < .max { counters[first] += 1 }
            if counters[second] < .max { counters[second] += 1 }
        }
        while planSamples.count <= plan { planSamples.append(0) }
        planSamples[plan] += 1
        samples += 1
        if samples >= Self.many {
            for index in counters.indices { counters[index] /= 2 }
            for index in planSamples.indices { planSamples[index] /= 2 }
            samples /= 2
            halvings += 1
        }
    }

    /// Returns the number of sampled changes of a plan.
    func samples(plan: Int) -> UInt32 {
        plan < planSamples.count ? planSamples[plan] : 0
    }

    /// Returns whether there are enough samples of a plan.
    func knows(plan: Int) -> Bool { samples(plan: plan) >= Self.enough }

    /// Returns the share of a plan's changes that are expected to hit a key; `nil` without enough
    /// samples.
    func expected(_ hash: UInt32, plan: Int) -> Double? {
        guard knows(plan: plan) else { return nil }
        let (first, second) = Self.places(hash)
        let hits = Int(min(counters[first], counters[second]))
        return Self.expected(hits: hits, in: planSamples[plan])
    }

    /// Returns the share that is expected of a key that was hit by so many of the samples.
    ///
    /// Users are shown what their conditions cost. Keys of few hits are all alike, because
    /// otherwise the cost would tell whether a single record has a value, also one that the user
    /// may not read. They count as never hit: most keys are, and a condition with a list of two
    /// hundred names would otherwise be expected at every change.
    static func expected(hits: Int, in samples: UInt32) -> Double {
        min((Double(hits < few ? 0 : hits) + 0.25) / Double(samples), 1)
    }

    /// The number of hits below which a key counts as never hit.
    private static let few = 8

    /// The state of the counters for a key at one moment.
    struct Sight {
        var hits: UInt16
        var samples: UInt32
        var halvings: Int

        /// Returns this state as it would be after the counters were halved up to `halvings` times
        /// in total.
        func faded(to halvings: Int) -> Sight {
            let times = halvings - self.halvings
            return Sight(hits: hits >> times, samples: samples >> times, halvings: halvings)
        }
    }

    /// Returns the current state of the counters for a key.
    func sight(of hash: UInt32, plan: Int) -> Sight {
        let (first, second) = Self.places(hash)
        return Sight(
            hits: min(counters[first], counters[second]),
            samples: samples(plan: plan), halvings: halvings)
    }

    private static func places(_ hash: UInt32) -> (Int, Int) {
        let mixed = UInt64(hash) &* 0x9E37_79B9_7F4A_7C15
        return (Int(hash & UInt32(width - 1)), width + Int(mixed >> 50))
    }

    /// Returns the expected share of changes in which a field equals a constant of this class,
    /// without any samples.
    static func guess(_ kind: ValueClass, order: Int64, length: Int) -> Double {
        switch kind {
        case .null: 0.3
        case .boolean: 0.4
        case .number:
            order == 0 || order == OrderedNumber.order(of: 1) ? 0.4 : 0.02
        case .string: length < 4 ? 0.02 : 0.005
        case .date: 0.005
        default: 0.001
        }
    }
}

// MARK: - Snapshots

extension Selectivity {
    /// Appends the counters to an image.
    func write(to image: inout ImageWriter) {
        image.append(samples)
        image.append(UInt64(planSamples.count))
        for count in planSamples { image.append(count) }
        for counter in counters { image.append(counter) }
    }

    /// Reads the counters from an image.
    ///
    /// - Throws: `ImageDamage` if the image ends first.
    mutating func load(_ image: inout ImageReader) throws {
        samples = try image.word()
        let plans = try image.count(0...Int(Int32.max))
        for _ in 0..<plans { planSamples.append(try image.word()) }
        for index in counters.indices { counters[index] = try image.word() }
    }
}
