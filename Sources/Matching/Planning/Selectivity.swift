import RelayModel

/// How often a key is hit, by what changes have shown so far and by rules of thumb before that.
///
/// Readers sample the keys of some changes; writers take the samples over. A count-min sketch keeps
/// them in constant space: its error only ever makes a key look more frequent than it is.
struct Selectivity: ~Copyable {
    private var counters: [UInt16]
    private var samples: UInt32 = 0
    /// The same by the plan of the changes' record type.
    private var planSamples: [UInt32] = []
    /// How often the counters were halved since the start.
    private var halvings = 0

    private static let width = 1 << 14
    /// What sampled changes of a record type showed counts from this many on.
    static let enough: UInt32 = 128
    /// At this count the counters are halved, so that the past fades.
    private static let many: UInt32 = 60_000

    init() {
        counters = [UInt16](repeating: 0, count: Self.width * 2)
    }

    /// Bytes held.
    var bytes: Int { counters.count * 2 }

    /// Takes over the keys of one sampled change of a plan.
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

    /// Changes of a plan that were seen.
    func samples(plan: Int) -> UInt32 {
        plan < planSamples.count ? planSamples[plan] : 0
    }

    /// Whether enough changes of a plan were seen.
    func knows(plan: Int) -> Bool { samples(plan: plan) >= Self.enough }

    /// The share of a plan's changes that hit a key, if enough were seen.
    func observed(_ hash: UInt32, plan: Int) -> Double? {
        guard knows(plan: plan) else { return nil }
        let (first, second) = Self.places(hash)
        let hits = Double(min(counters[first], counters[second])) + 0.25
        return min(hits / Double(planSamples[plan]), 1)
    }

    /// What the counters say of a key at one moment.
    struct Sight {
        var hits: UInt16
        var samples: UInt32
        var halvings: Int

        /// What is left of this after the counters were halved more often.
        func faded(to halvings: Int) -> Sight {
            let times = halvings - self.halvings
            return Sight(hits: hits >> times, samples: samples >> times, halvings: halvings)
        }
    }

    /// What the counters say of a key now.
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

    /// The share of changes expected to have a field equal to a constant of this class, before any
    /// was seen.
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
    /// Appends what was learned to an image.
    func write(to image: inout ImageWriter) {
        image.append(samples)
        image.append(UInt64(planSamples.count))
        for count in planSamples { image.append(count) }
        for counter in counters { image.append(counter) }
    }

    /// Takes over what was learned from an image.
    ///
    /// - Throws: `ImageDamage` if it ends before.
    mutating func load(_ image: inout ImageReader) throws {
        samples = try image.word()
        let plans = try image.count(0...Int(Int32.max))
        for _ in 0..<plans { planSamples.append(try image.word()) }
        for index in counters.indices { counters[index] = try image.word() }
    }
}
