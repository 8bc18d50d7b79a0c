import PredicateLanguage
import RelayModel

/// Encodes values as slots and canonical bytes.
///
/// Two scalars of one class are equal to a predicate if and only if their canonical bytes are.
struct ValueEncoder: ~Copyable {
    /// The canonical bytes of all values, one after the other.
    var bytes = GrowingBuffer<UInt8>(capacity: 256)
    /// The elements of all collections.
    var elements = GrowingBuffer<FieldSlot>()
    /// The cost of texts that could not be composed, folded or split into words as fast as they are
    /// read, in bytes of such texts.
    private var slowBytes = 0
    /// The limit on that cost; values beyond it are left out.
    var mostSlowBytes = Int.max

    /// Whether values were left out.
    var isGivenUp: Bool { slowBytes > mostSlowBytes }

    /// Adds the cost of a text, in bytes of composed text at 80 ns each, and returns whether the
    /// limit allows it.
    mutating func admits(slow count: Int) -> Bool {
        slowBytes += count
        return !isGivenUp
    }

    mutating func removeAll() {
        bytes.count = 0
        elements.count = 0
        slowBytes = 0
    }

    /// Encodes a value.
    ///
    /// The elements of a collection become slots; those of a dictionary are its values.
    mutating func encode(_ value: FieldValue) -> FieldSlot {
        switch value {
        case .list(let values): collection(values)
        case .set(let values): deep(values)
        case .map(let members): deep(members.values)
        default: scalar(value)
        }
    }

    /// Encodes a collection that a view must read from the original value, because the order of a
    /// set's or dictionary's elements differs in every process.
    private mutating func deep(_ values: some Collection<FieldValue>) -> FieldSlot {
        var slot = collection(values)
        slot.form.insert(.deep)
        return slot
    }

    private mutating func collection(_ values: some Collection<FieldValue>) -> FieldSlot {
        var slot = FieldSlot(.collection)
        elements.reserve(values.count)
        let start = elements.count
        for value in values {
            let element = scalar(value)
            elements.append(element)
            if element.isDeep { slot.form.insert(.deep) }
        }
        slot.offset = UInt32(start)
        slot.length = UInt32(values.count)
        return slot
    }

    private mutating func scalar(_ value: FieldValue) -> FieldSlot {
        switch value {
        case .null: return FieldSlot(.null)
        case .bool(let flag): return number(flag)
        case .integer(let integer): return number(OrderedNumber(integer))
        case .double(let double):
            return OrderedNumber(double).map { number($0) } ?? FieldSlot(.notANumber)
        case .string(let text): return string(text)
        case .timestamp(let moment): return date(moment)
        case .bytes(let content): return blob(.bytes, content)
        case .objectID(let content): return blob(.objectID, content)
        case .reference(let reference): return self.reference(reference.recordID)
        case .location(let place): return location(place)
        case .uuid(let uuid): return words(.uuid, uuid.high, uuid.low)
        case .list, .set, .map:
            // A collection inside a collection equals no scalar, which is all that rows need to
            // know.
            return FieldSlot(.notANumber)
        }
    }

    /// Encodes a boolean as the number that NSPredicate takes it for.
    mutating func number(_ flag: Bool) -> FieldSlot {
        var slot = number(OrderedNumber(flag ? 1 : 0 as Int64))
        slot.form = .boolean
        return slot
    }

    mutating func number(_ number: OrderedNumber) -> FieldSlot {
        var slot = FieldSlot(.number)
        slot.order = number.order
        slot.tail = number.tail
        slot.offset = UInt32(bytes.count)
        append(UInt64(bitPattern: number.order))
        slot.length = 8
        if number.tail != 0 {
            append(UInt64(number.tail))
            slot.length = 16
        }
        return slot
    }

    private mutating func date(_ moment: Timestamp) -> FieldSlot {
        var slot = FieldSlot(.date)
        slot.order = moment.order
        slot.offset = UInt32(bytes.count)
        append(UInt64(bitPattern: slot.order))
        slot.length = 8
        return slot
    }

    /// Encodes a text in normal form C.
    mutating func string(_ text: String) -> FieldSlot {
        let start = bytes.count
        let isPlain = text.utf8.withContiguousStorageIfAvailable { utf8 in
            guard Self.isNormalized(utf8) else { return false }
            if let base = utf8.baseAddress { bytes.append(from: base, count: utf8.count) }
            return true
        }
        if isPlain == true { return string(from: start) }
        guard let composed = composed(text) else { return FieldSlot(.unknown) }
        append(composed.utf8)
        var slot = string(from: start)
        if !composed.utf8.elementsEqual(text.utf8) { slot.form = .altered }
        return slot
    }

    private mutating func composed(_ text: String) -> String? {
        if let composed = IndexedText.foldedSingly(text, []) { return composed }
        return admits(slow: text.utf8.count) ? IndexedText.composed(text) : nil
    }

    /// Returns a folded text; `nil` if the limit on slow texts does not allow it.
    mutating func folded(
        _ text: String, _ options: RecordPredicate.TextOptions
    ) -> String? {
        if let folded = IndexedText.foldedSingly(text, options) { return folded }
        return admits(slow: text.utf8.count * 3) ? IndexedText.folded(text, options) : nil
    }

    /// Returns the slot of a text whose normalised bytes were appended from `start` on.
    mutating func string(from start: Int) -> FieldSlot {
        var slot = FieldSlot(.string)
        slot.offset = UInt32(start)
        slot.length = UInt32(bytes.count - start)
        return slot
    }

    /// Returns whether a text is certainly in normal form C: every character is below U+0300, or an
    /// ideograph from U+4000 to U+9FFF.
    @inline(__always)
    static func isNormalized(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
        var index = 0
        while index + 8 <= utf8.count {
            let eight = UnsafeRawPointer(utf8.baseAddress.unsafelyUnwrapped + index)
                .loadUnaligned(as: UInt64.self)
            if eight & 0x8080_8080_8080_8080 != 0 { break }
            index += 8
        }
        while index < utf8.count {
            let byte = utf8[index]
            if byte >= 0xCC, !(0xE4...0xE9 ~= byte) { return false }
            index += 1
        }
        return true
    }

    private mutating func blob(_ kind: ValueClass, _ content: [UInt8]) -> FieldSlot {
        var slot = FieldSlot(kind)
        slot.offset = UInt32(bytes.count)
        slot.length = UInt32(content.count)
        append(content)
        return slot
    }

    /// Returns the slot of a pattern's bytes.
    mutating func pattern(_ content: [UInt8]) -> FieldSlot { blob(.string, content) }

    private mutating func reference(_ recordID: RecordID) -> FieldSlot {
        var slot = FieldSlot(.reference)
        slot.offset = UInt32(bytes.count)
        append(recordID.recordName.rawValue.utf8)
        bytes.append(0)
        append(recordID.zoneID.zoneName.utf8)
        bytes.append(0)
        append((recordID.zoneID.ownerRecordName?.rawValue ?? "").utf8)
        slot.length = UInt32(bytes.count) - slot.offset
        return slot
    }

    private mutating func location(_ place: Location) -> FieldSlot {
        // Adding 0 turns -0 into 0.
        words(.location, (place.latitude + 0).bitPattern, (place.longitude + 0).bitPattern)
    }

    private mutating func words(_ kind: ValueClass, _ high: UInt64, _ low: UInt64) -> FieldSlot {
        var slot = FieldSlot(kind)
        slot.offset = UInt32(bytes.count)
        append(high)
        append(low)
        slot.length = 16
        return slot
    }

    /// Appends canonical bytes.
    mutating func append(_ content: some Collection<UInt8>) {
        bytes.reserve(content.count)
        for byte in content { bytes.append(byte) }
    }

    mutating func append(_ word: UInt64) {
        withUnsafeBytes(of: word.littleEndian) { raw in
            let start = raw.bindMemory(to: UInt8.self)
            if let base = start.baseAddress { bytes.append(from: base, count: 8) }
        }
    }
}
