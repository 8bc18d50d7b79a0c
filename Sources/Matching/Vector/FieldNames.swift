#if canImport(Glibc)
    import Glibc
#endif

/// The fields of one record type that predicates use, found by the bytes of their names.
///
/// Not safe for concurrent use: each reader has its own.
final class FieldNames {
    private var heads = GrowingBuffer<UInt64>()
    private var lengths = GrowingBuffer<Int>()
    private var starts = GrowingBuffer<Int>()
    private var paths = GrowingBuffer<Int>()
    private var bytes = GrowingBuffer<UInt8>(capacity: 64)
    /// Indices into the lists plus 1; 0 where empty.
    ///
    /// There are at least twice as many slots as names.
    private var slots = GrowingBuffer<Int>()
    private var mask = 0
    /// The number of paths of the plan when the names were listed.
    let pathCount: Int

    /// Lists the fields of a plan that have ASCII names; other fields are found by their text.
    init(_ plan: RecordTypePlan) {
        pathCount = plan.paths.count
        for (number, path) in plan.paths.enumerated()
        where !path.field.isEmpty && path.field.utf8.allSatisfy({ $0 < 0x80 }) {
            append(path.field, number)
        }
        var size = 4
        while size < heads.count * 2 { size *= 2 }
        mask = size - 1
        for _ in 0..<size { slots.append(0) }
        for place in 0..<heads.count { enter(place) }
    }

    private func append(_ name: String, _ path: Int) {
        starts.append(bytes.count)
        for byte in name.utf8 { bytes.append(byte) }
        let length = name.utf8.count
        var head: UInt64 = 0
        for (index, byte) in name.utf8.prefix(8).enumerated() {
            head |= UInt64(byte) << UInt64(8 * index)
        }
        heads.append(head)
        lengths.append(length)
        paths.append(path)
    }

    private func enter(_ place: Int) {
        var slot = Self.hash(heads[place], lengths[place]) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = place + 1
    }

    @inline(__always)
    private static func hash(_ head: UInt64, _ length: Int) -> Int {
        let mixed = (head ^ UInt64(truncatingIfNeeded: length)) &* 0x9E37_79B9_7F4A_7C15
        return Int(truncatingIfNeeded: mixed >> 32)
    }

    /// Returns the path of the field with this plain name; `nil` if no predicate uses it.
    @inline(__always)
    func path(_ name: JSONCursor.Text, in cursor: JSONCursor) -> Int? {
        let head = cursor.head(name.start, name.length)
        var slot = Self.hash(head, name.length) & mask
        while true {
            let place = slots[slot] - 1
            if place < 0 { return nil }
            if heads[place] == head, lengths[place] == name.length,
                name.length <= 8
                    || memcmp(
                        bytes.base + starts[place] + 8, cursor.base + name.start + 8,
                        name.length - 8) == 0
            {
                return paths[place]
            }
            slot = (slot + 1) & mask
        }
    }
}
