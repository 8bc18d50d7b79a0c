import PredicateLanguage
import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// A key to look up, in 16 bytes.
struct Probe: BitwiseCopyable {
    var hash: UInt32
    var dimension: UInt32
    /// The start of its bytes among the change's bytes.
    var offset: UInt32
    var length: UInt32
}

/// A change in the form that the index reads: its values as slots, and the hashed keys for its
/// look-up.
///
/// ``SubscriptionIndex/decode(_:into:)`` fills it. It is reused for the next change, so that
/// nothing is allocated. Not safe for concurrent use.
package final class DecodedChange {
    /// Returns the processor time of the thread, in nanoseconds since any fixed moment.
    let threadTime: @Sendable () -> UInt64
    /// The values of the plan's paths, by path number.
    @exclusivity(unchecked) var slots = GrowingBuffer<FieldSlot>()
    /// The keys, those of the record type first.
    @exclusivity(unchecked) var probes = GrowingBuffer<Probe>()
    @exclusivity(unchecked) var encoder = ValueEncoder()
    /// The words of a text that are to be looked up.
    @exclusivity(unchecked) var words = GrowingBuffer<FieldSlot>(capacity: 1)
    /// The places of keys of texts and elements in ``probes``, by the lower bits of their hashes,
    /// so that a repeated word is looked up once.
    ///
    /// The upper half of each entry is the round in which it was noted.
    @exclusivity(unchecked) private var seen = GrowingBuffer<UInt64>(capacity: 1)
    @exclusivity(unchecked) private var round: UInt32 = 0
    /// The fields, for conditions that rows cannot judge.
    ///
    /// If the change is still text, they are read on first use.
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
    /// The fields including CloudKit's system fields, if some predicate on the record type reads
    /// one.
    @exclusivity(unchecked) var judgedFields: RecordFields?
    @exclusivity(unchecked) private var knownFields: RecordFields = [:]
    /// The steps of reading the fields once, computed on first use.
    var reading: Int {
        if knownReading < 0 { knownReading = EvaluationWeight.reading(of: fields) }
        return knownReading
    }
    @exclusivity(unchecked) private var knownReading = -1
    @exclusivity(unchecked) private var text: String?
    @exclusivity(unchecked) private var fieldNames: [FieldNames?] = []
    /// The record type that was last looked up, as its bytes in the text, and its plan.
    @exclusivity(unchecked) private var lastType = GrowingBuffer<UInt8>(capacity: 32)
    @exclusivity(unchecked) private var lastPlan: (version: UInt64, number: Int?) = (.max, nil)
    /// The steps of finding values inside members, measured by the thread's time.
    @exclusivity(unchecked) var walkedSteps = 0
    /// The maximum number of these steps.
    @exclusivity(unchecked) var mostWalkedSteps = Limits.maximumStepsPerChange
    /// Whether decoding was given up because there were more steps.
    var isCutShort: Bool { walkedSteps > mostWalkedSteps }
    /// Whether the change is a row of an initial snapshot, which fires nothing.
    @exclusivity(unchecked) var isSnapshot = false
    /// Whether the stored text names the users who may read the record, and not everybody.
    @exclusivity(unchecked) var namesReaders = false
    /// Whether absent fields are unknown.
    @exclusivity(unchecked) var isPartial = false
    /// The plan of its record type; 0 if no subscription names the type.
    @exclusivity(unchecked) var plan = 0
    /// The operation, as the bit of ``FiresOn``.
    @exclusivity(unchecked) var operation = FiresOn.create
    /// The moment of the evaluation.
    @exclusivity(unchecked) var now: Timestamp?
    /// The version of the catalog whose numbers are used; `.max` while nothing was decoded.
    @exclusivity(unchecked) var catalogVersion: UInt64 = .max
    /// The decoded change, to be decoded again if the catalog grows.
    @exclusivity(unchecked) var source: RecordChange?

    package init() {
        threadTime = ThreadTime.nanoseconds
    }

    /// Creates an empty change whose evaluations are measured by `threadTime`, in nanoseconds.
    init(threadTime: @escaping @Sendable () -> UInt64) {
        self.threadTime = threadTime
    }

    /// Keeps the text of the change, for conditions that rows cannot judge.
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

    /// Returns the names of a plan's fields, as bytes.
    func names(of plan: Int, in catalog: Catalog) -> FieldNames {
        while fieldNames.count <= plan { fieldNames.append(nil) }
        // Paths are never removed, so an equal count means that the names are current.
        if let known = fieldNames[plan], known.pathCount == catalog.plans[plan].paths.count {
            return known
        }
        let names = FieldNames(catalog.plans[plan])
        fieldNames[plan] = names
        return names
    }

    /// Returns the plan of the record type with this plain name, if it was the last one looked up.
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

    /// Removes the last key if it is a repetition; some repetitions are not detected.
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

    /// Frees the capacity that is not in use, for changes that are kept.
    package func compact() {
        slots.compact()
        probes.compact()
        encoder.bytes.compact()
        encoder.elements.compact()
    }

    /// The memory in bytes.
    package var bytes: Int {
        slots.capacity * MemoryLayout<FieldSlot>.stride
            + probes.capacity * MemoryLayout<Probe>.stride + encoder.bytes.capacity
            + encoder.elements.capacity * MemoryLayout<FieldSlot>.stride
    }
}
