import PredicateLanguage
import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// A key to look up: 16 bytes.
struct Probe: BitwiseCopyable {
    var hash: UInt32
    var dimension: UInt32
    /// Where its bytes are among the change's.
    var offset: UInt32
    var length: UInt32
}

/// A change as the index reads it: its values as slots, and the keys it is looked up by, hashed.
///
/// Made by ``SubscriptionIndex/decode(_:into:)`` and used again for the next change, so that
/// nothing is allocated. Not safe for concurrent use.
package final class DecodedChange {
    /// The processor time of the thread, in nanoseconds since any moment.
    let threadTime: @Sendable () -> UInt64
    /// The values of the plan's paths, by number.
    @exclusivity(unchecked) var slots = GrowingBuffer<FieldSlot>()
    /// The keys, those of the record type first.
    @exclusivity(unchecked) var probes = GrowingBuffer<Probe>()
    @exclusivity(unchecked) var encoder = ValueEncoder()
    /// Words of a text that are to be looked up.
    @exclusivity(unchecked) var words = GrowingBuffer<FieldSlot>(capacity: 1)
    /// Where keys of texts and elements are among ``probes``, by the lower bits of their hashes, so
    /// that what a text says often is looked up once; below the round in which they were noted.
    @exclusivity(unchecked) private var seen = GrowingBuffer<UInt64>(capacity: 1)
    @exclusivity(unchecked) private var round: UInt32 = 0
    /// The fields, for what rows cannot judge; those of a change that is text still are read when
    /// they are asked for.
    var fields: RecordFields {
        get {
            if let text { read(text) }
            return knownFields
        }
        set {
            knownFields = newValue
            knownReading = -1
        }
    }
    /// The fields with CloudKit's system fields, where some predicate on the record type reads one.
    @exclusivity(unchecked) var judgedFields: RecordFields?
    @exclusivity(unchecked) private var knownFields: RecordFields = [:]
    /// The steps of reading it once, computed when they are asked for.
    var reading: Int {
        if knownReading < 0 { knownReading = EvaluationWeight.reading(of: fields) }
        return knownReading
    }
    @exclusivity(unchecked) private var knownReading = -1
    @exclusivity(unchecked) private var text: String?
    @exclusivity(unchecked) private var fieldNames: [FieldNames?] = []
    /// The record type that was looked up last, as it stands in texts, and its plan.
    @exclusivity(unchecked) private var lastType = GrowingBuffer<UInt8>(capacity: 32)
    @exclusivity(unchecked) private var lastPlan: (version: UInt64, number: Int?) = (.max, nil)
    /// The steps of finding values behind members, by the time that the thread took.
    @exclusivity(unchecked) var walkedSteps = 0
    /// How many of them there may be.
    @exclusivity(unchecked) var mostWalkedSteps = Limits.maximumStepsPerChange
    /// Whether it was given up because there were more.
    var isCutShort: Bool { walkedSteps > mostWalkedSteps }
    /// Whether it is a row of an initial snapshot, which fires nothing.
    @exclusivity(unchecked) var isSnapshot = false
    /// Whether absent fields are unknown.
    @exclusivity(unchecked) var isPartial = false
    /// The plan of its record type; 0 if no subscription names it.
    @exclusivity(unchecked) var plan = 0
    /// What happened, as the bit of ``FiresOn``.
    @exclusivity(unchecked) var operation = FiresOn.create
    /// The moment of the evaluation.
    @exclusivity(unchecked) var now: Timestamp?
    /// The catalog's version that the numbers are of; 0 while nothing was decoded.
    @exclusivity(unchecked) var catalogVersion: UInt64 = .max
    /// What was decoded, to be decoded again if the catalog has grown meanwhile.
    @exclusivity(unchecked) var source: RecordChange?

    package init() {
        threadTime = ThreadTime.nanoseconds
    }

    /// Makes room for a change whose evaluations are measured by `threadTime`, in nanoseconds.
    init(threadTime: @escaping @Sendable () -> UInt64) {
        self.threadTime = threadTime
    }

    /// Keeps the text that the change is, for what rows cannot judge.
    func hold(_ text: String) {
        self.text = text
        source = nil
    }

    private func read(_ text: String) {
        self.text = nil
        knownReading = -1
        let change = try? RecordChange(storedForm: JSONValue(stored: text))
        knownFields = change?.judgedImage?.fields ?? [:]
    }

    /// The names of a plan's fields, as bytes.
    func names(of plan: Int, in catalog: Catalog) -> FieldNames {
        while fieldNames.count <= plan { fieldNames.append(nil) }
        // Paths are only ever added.
        if let known = fieldNames[plan], known.pathCount == catalog.plans[plan].paths.count {
            return known
        }
        let names = FieldNames(catalog.plans[plan])
        fieldNames[plan] = names
        return names
    }

    /// The plan of the record type with this plain name, if it is the one that was looked up last.
    @inline(__always)
    func knownPlan(_ name: UnsafePointer<UInt8>, _ length: Int, version: UInt64) -> Int?? {
        guard lastPlan.version == version, lastType.count == length,
            memcmp(lastType.base, name, length) == 0
        else { return nil }
        return .some(lastPlan.number)
    }

    /// Remembers a look-up for ``knownPlan(_:_:version:)``.
    func knowPlan(
        _ number: Int?, _ name: UnsafePointer<UInt8>, _ length: Int, version: UInt64
    ) {
        lastType.count = 0
        lastType.append(from: name, count: length)
        lastPlan = (version, number)
    }

    func removeAll() {
        text = nil
        knownReading = -1
        judgedFields = nil
        walkedSteps = 0
        slots.count = 0
        probes.count = 0
        encoder.removeAll()
        round &+= 1
    }

    /// Takes back the last key if it is there already; a few are kept twice.
    func dropRepetition() {
        if seen.count == 0 {
            seen.reserve(Self.seenCount)
            for _ in 0..<Self.seenCount { seen.append(0) }
        }
        let last = probes.count - 1
        let probe = probes[last]
        let index = Int(probe.hash) & (Self.seenCount - 1)
        let known = seen[index]
        let place = Int(UInt32(truncatingIfNeeded: known))
        if known >> 32 == round, place < last, isSame(probes[place], probe) {
            probes.count = last
        } else {
            seen[index] = UInt64(round) << 32 | UInt64(last)
        }
    }

    private func isSame(_ left: Probe, _ right: Probe) -> Bool {
        left.hash == right.hash && left.dimension == right.dimension
            && left.length == right.length
            && KeyBytes.equal(
                encoder.bytes.base + Int(left.offset), encoder.bytes.base + Int(right.offset),
                Int(left.length))
    }

    private static let seenCount = 2048

    /// The start of a slot's canonical bytes.
    @inline(__always)
    func start(of slot: FieldSlot) -> UnsafePointer<UInt8> {
        UnsafePointer(encoder.bytes.base + Int(slot.offset))
    }

    /// Gives back the room beyond what is in use: for changes that are kept.
    package func compact() {
        slots.compact()
        probes.compact()
        encoder.bytes.compact()
        encoder.elements.compact()
    }

    /// Bytes held.
    package var bytes: Int {
        slots.capacity * MemoryLayout<FieldSlot>.stride
            + probes.capacity * MemoryLayout<Probe>.stride + encoder.bytes.capacity
            + encoder.elements.capacity * MemoryLayout<FieldSlot>.stride
    }
}
