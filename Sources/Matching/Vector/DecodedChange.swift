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
/// nothing
/// is allocated. Not safe for concurrent use.
package final class DecodedChange {
    /// The values of the shelf's paths, by number.
    var slots = GrowingBuffer<FieldSlot>()
    /// The keys, those of the record type first.
    var probes = GrowingBuffer<Probe>()
    var encoder = ValueEncoder()
    /// The fields, for what rows cannot judge; those of a change that is text still are read when
    /// they are asked for.
    var fields: RecordFields {
        get {
            if let text { read(text) }
            return knownFields
        }
        set { knownFields = newValue }
    }
    private var knownFields: RecordFields = [:]
    private var text: String?
    private var fieldNames: [FieldNames?] = []
    /// Whether it is a row of an initial snapshot, which fires nothing.
    var isSnapshot = false
    /// Whether absent fields are unknown.
    var isPartial = false
    /// What happened, as the bit of ``FiresOn``.
    var operation = FiresOn.create
    /// The moment of the evaluation.
    var now: Timestamp?
    /// The catalog's version that the numbers are of; 0 while nothing was decoded.
    var catalogVersion: UInt64 = .max
    /// What was decoded, to be decoded again if the catalog has grown meanwhile.
    var source: RecordChange?

    /// Creates an empty one.
    package init() {}

    /// Keeps the text that the change is, for what rows cannot judge.
    func hold(_ text: String) {
        self.text = text
        source = nil
    }

    private func read(_ text: String) {
        self.text = nil
        let change = try? RecordChange(storedForm: JSONValue(parsing: text))
        knownFields = change?.judgedImage?.fields ?? [:]
    }

    /// The names of a shelf's fields, as bytes.
    func names(of shelf: Int, in catalog: Catalog) -> FieldNames {
        while fieldNames.count <= shelf { fieldNames.append(nil) }
        // Paths are only ever added.
        if let known = fieldNames[shelf], known.pathCount == catalog.shelves[shelf].paths.count {
            return known
        }
        let names = FieldNames(catalog.shelves[shelf])
        fieldNames[shelf] = names
        return names
    }

    func removeAll() {
        text = nil
        slots.count = 0
        probes.count = 0
        encoder.removeAll()
    }

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

/// Writes the keys of a decoded change.
struct ProbeWriter {
    let catalog: Catalog
    let seed: UInt64

    /// Adds the keys by which changes of a shelf are looked up; 0 is the common compartment.
    func write(shelf number: Int, compartment: UInt32, to change: DecodedChange) {
        let isCompartmented = compartment != 0
        let every =
            isCompartmented
            ? catalog.shelves[number].compartmentEvery : catalog.shelves[number].every
        if every != 0 {
            let start = begin(compartment, change)
            add(every, from: start, change)
        }
        let count = catalog.shelves[number].paths.count
        for path in 0..<count {
            if isCompartmented {
                write(
                    catalog.shelves[number].compartmentPaths[path], path, compartment, change)
            } else {
                write(catalog.shelves[number].paths[path], path, 0, change)
            }
        }
    }

    @inline(__always)
    private func write(
        _ use: borrowing PathUse, _ path: Int, _ compartment: UInt32, _ change: DecodedChange
    ) {
        let slot = change.slots[path]
        switch slot.kind {
        case .unknown, .notANumber: return
        case .collection: elements(use, slot, compartment, change)
        default:
            let dimension = use.equal[slot.kind]
            if dimension != 0 { scalar(dimension, slot, compartment, change) }
            switch slot.kind {
            case .string: texts(use, slot, compartment, change)
            case .number, .date: cells(use, slot, compartment, change)
            default: return
            }
        }
    }

    private func elements(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            let dimension = use.element[element.kind]
            if dimension != 0 { scalar(dimension, element, compartment, change) }
        }
    }

    private func texts(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        if use.text != 0 { add(use.text, from: begin(compartment, change), change) }
        var lengths = use.prefixLengths
        while lengths != 0 {
            let length = lengths.trailingZeroBitCount
            lengths &= lengths - 1
            if length > slot.length { return }
            var part = slot
            part.length = UInt32(length)
            scalar(use.prefix, part, compartment, change)
        }
    }

    private func cells(
        _ use: borrowing PathUse, _ slot: FieldSlot, _ compartment: UInt32,
        _ change: DecodedChange
    ) {
        if use.open[slot.kind] != 0 {
            add(use.open[slot.kind], from: begin(compartment, change), change)
        }
        var levels = slot.kind == .date ? use.dateLevels : use.numberLevels
        if levels == 0 { return }
        let place = CellLine.place(slot.kind, slot.order)
        while levels != 0 {
            let level = levels.trailingZeroBitCount
            levels &= levels - 1
            let start = begin(compartment, change)
            change.encoder.append(UInt64(bitPattern: place >> Int64(level)))
            change.encoder.bytes.append(UInt8(level))
            add(use.cell[slot.kind], from: start, change)
        }
    }

    /// Adds the key of a value whose canonical bytes are there already.
    @inline(__always)
    private func scalar(
        _ dimension: UInt32, _ slot: FieldSlot, _ compartment: UInt32, _ change: DecodedChange
    ) {
        if compartment == 0, slot.length <= KeyBytes.longest {
            let hash = KeyHash.hash(
                change.start(of: slot), Int(slot.length),
                seed: KeyBytes.seed(seed, dimension - 1))
            change.probes.append(
                Probe(
                    hash: hash, dimension: dimension - 1, offset: slot.offset,
                    length: slot.length))
            return
        }
        let start = begin(compartment, change)
        KeyBytes.append(slot, from: change.encoder.bytes.base, to: &change.encoder.bytes)
        add(dimension, from: start, change)
    }

    @inline(__always)
    private func begin(_ compartment: UInt32, _ change: DecodedChange) -> Int {
        let start = change.encoder.bytes.count
        if compartment != 0 { KeyBytes.append(compartment, to: &change.encoder.bytes) }
        return start
    }

    @inline(__always)
    private func add(_ dimension: UInt32, from start: Int, _ change: DecodedChange) {
        let length = change.encoder.bytes.count - start
        let hash = KeyHash.hash(
            change.encoder.bytes.base + start, length, seed: KeyBytes.seed(seed, dimension - 1))
        change.probes.append(
            Probe(
                hash: hash, dimension: dimension - 1, offset: UInt32(start),
                length: UInt32(length)))
    }
}

/// The bytes of keys, which saving and matching must form alike.
enum KeyBytes {
    /// Values up to this length are keys as they are; of longer ones the key is the beginning, the
    /// length and a digest, and the rows must verify the value.
    static let longest: UInt32 = 120
    /// What is kept of a longer value.
    static let kept = 104
    /// The longest prefix that is a key; longer ones are cut, and verified.
    static let longestPrefix = 63

    @inline(__always)
    static func seed(_ seed: UInt64, _ dimension: UInt32) -> UInt64 {
        seed &+ UInt64(dimension + 1) &* 0x9E37_79B9_7F4A_7C15
    }

    static func append(_ compartment: UInt32, to bytes: inout GrowingBuffer<UInt8>) {
        for shift in [0, 8, 16, 24] as [UInt32] {
            bytes.append(UInt8(truncatingIfNeeded: compartment >> shift))
        }
    }

    /// Appends the key of a value whose bytes lie in `source`, which may be `bytes` itself.
    static func append(
        _ slot: FieldSlot, from source: UnsafeMutablePointer<UInt8>,
        to bytes: inout GrowingBuffer<UInt8>
    ) {
        let isSame = source == bytes.base
        bytes.reserve(Int(longest) + 16)
        let start = (isSame ? bytes.base : source) + Int(slot.offset)
        if slot.length <= longest {
            bytes.append(from: start, count: Int(slot.length))
            return
        }
        let digest = KeyHash.wide(start, Int(slot.length), seed: 0x5EED)
        bytes.append(from: start, count: kept)
        for word in [UInt64(slot.length), digest] {
            for shift in stride(from: 0, to: 64, by: 8) as StrideTo<UInt64> {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
    }
}
