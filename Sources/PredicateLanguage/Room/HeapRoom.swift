import RelayModel

/// The heap memory of values in bytes, as the allocator provides it.
///
/// The estimates err on the high side.
package enum HeapRoom {
    /// Returns the size of the block that glibc allocates for `bytes` bytes.
    static func block(_ bytes: Int) -> Int { max(32, (bytes + 23) & ~15) }

    /// Returns the size of an object with `bytes` bytes of contents, or of the contents of an
    /// indirect enumeration case.
    package static func object(_ bytes: Int) -> Int { block(16 + bytes) }

    /// Returns the size of an array with a capacity of `count` elements.
    package static func array(_ count: Int, _ stride: Int) -> Int {
        count == 0 ? 0 : block(32 + count * stride)
    }

    /// Returns the size of an array that has grown to `count` elements, of which up to half is
    /// unused.
    package static func grownArray(_ count: Int, _ stride: Int) -> Int {
        array(count > 1 ? 2 * count : count, stride)
    }

    /// Returns the size of a set or dictionary with `count` elements.
    package static func table(_ count: Int, _ stride: Int) -> Int {
        guard count > 0 else { return 0 }
        var places = 2
        while places * 3 < count * 4 { places *= 2 }
        return block(64 + places * stride + places / 8 + 8)
    }

    /// Returns the size of a text of `bytes` bytes.
    ///
    /// Short texts are stored inline.
    package static func text(_ bytes: Int) -> Int { bytes > 15 ? array(bytes + 1, 1) : 0 }

    static func text(_ text: String) -> Int { Self.text(text.utf8.count) }
}

extension FieldValue {
    /// The bytes on the heap, in addition to the value's inline storage.
    var heapRoom: Int {
        let stride = MemoryLayout<FieldValue>.stride
        switch self {
        case .null, .bool, .integer, .double, .timestamp, .location, .uuid: return 0
        case .string(let text): return HeapRoom.text(text)
        case .bytes(let bytes), .objectID(let bytes): return HeapRoom.array(bytes.count, 1)
        case .reference(let reference):
            let id = reference.recordID
            return HeapRoom.object(MemoryLayout<RecordReference>.size)
                + HeapRoom.text(id.recordName.rawValue) + HeapRoom.text(id.zoneID.zoneName)
                + HeapRoom.text(id.zoneID.ownerRecordName?.rawValue ?? "")
        case .list(let values):
            return values.reduce(HeapRoom.grownArray(values.count, stride)) { $0 + $1.heapRoom }
        case .set(let values):
            return values.reduce(HeapRoom.table(values.count, stride)) { $0 + $1.heapRoom }
        case .map(let members):
            let own = HeapRoom.table(members.count, stride + MemoryLayout<String>.stride)
            return members.reduce(own) { $0 + HeapRoom.text($1.key) + $1.value.heapRoom }
        }
    }
}
