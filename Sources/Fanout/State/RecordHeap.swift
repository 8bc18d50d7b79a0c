import RelayModel

/// Records of bytes, one after the other, identified by the places where they begin.
///
/// A million subscriptions as Swift values take more than a kilobyte each. As records they take
/// little more than their texts. A removed record stays until half of the heap is dead. Then the
/// owner packs the heap.
///
/// ```
/// | length, highest bit: dead · 4 | content |
/// ```
struct RecordHeap: Sendable {
    private(set) var bytes: [UInt8] = []
    private(set) var deadBytes = 0

    private static let header = 4
    private static let dead: UInt32 = 1 << 31
    /// The number of dead bytes up to which packing is not worthwhile.
    private static let smallest = 1 << 20

    /// Whether so much is dead that the heap should be packed.
    var isSparse: Bool { deadBytes > Self.smallest && deadBytes > bytes.count / 2 }

    /// Creates a heap that has no records yet.
    init() {}

    /// Loads a heap from a snapshot.
    ///
    /// - Throws: `ImageDamage` if the records do not fill it.
    init(image: ArraySlice<UInt8>) throws {
        bytes = Array(image)
        var place = 0
        while place < bytes.count {
            guard bytes.count - place >= Self.header else {
                throw ImageDamage("a record has no length")
            }
            let length = word(at: place) as UInt32
            if length & Self.dead != 0 { deadBytes += Self.size(length) }
            place += Self.size(length)
        }
        guard place == bytes.count else { throw ImageDamage("a record ends outside of its heap") }
    }

    /// Adds a record, and returns the place where it begins.
    mutating func append(_ content: borrowing ImageWriter) -> Int {
        let place = bytes.count
        let length = UInt32(content.bytes.count)
        unsafe withUnsafeBytes(of: length.littleEndian) { unsafe bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: content.bytes)
        return place
    }

    /// Marks a record as removed.
    mutating func remove(at place: Int) {
        let length = word(at: place) as UInt32
        guard length & Self.dead == 0 else { return }
        bytes[place + 3] |= 0x80
        deadBytes += Self.size(length)
    }

    /// Removes the dead records, which changes the places of all records.
    mutating func pack() {
        var packed: [UInt8] = []
        packed.reserveCapacity(bytes.count - deadBytes)
        forEach { place, length in
            packed.append(contentsOf: bytes[place..<place + Self.header + length])
        }
        bytes = packed
        deadBytes = 0
    }

    /// Calls `body` with the place and the length of the content of each record, in the order in
    /// which they were added.
    func forEach(_ body: (_ place: Int, _ length: Int) -> Void) {
        var place = 0
        while place < bytes.count {
            let length = word(at: place) as UInt32
            if length & Self.dead == 0 { body(place, Int(length)) }
            place += Self.size(length)
        }
    }

    private static func size(_ length: UInt32) -> Int { Int(length & ~dead) + header }

    // MARK: Contents

    /// Returns the word at `offset` of the content of the record at `place`.
    func word<Word: FixedWidthInteger>(_ offset: Int, of place: Int) -> Word {
        word(at: place + Self.header + offset)
    }

    /// Writes the word at `offset` of the content of the record at `place`.
    mutating func set(_ word: UInt32, _ offset: Int, of place: Int) {
        for index in 0..<4 {
            bytes[place + Self.header + offset + index] =
                UInt8(truncatingIfNeeded: word >> UInt32(8 * index))
        }
    }

    /// Returns the text of `count` bytes at `offset` of the content of the record at `place`.
    func text(_ offset: Int, _ count: Int, of place: Int) -> String {
        let start = place + Self.header + offset
        return String(decoding: bytes[start..<start + count], as: UTF8.self)
    }

    /// Returns whether the content has these bytes at `offset`.
    func has(_ text: String, _ offset: Int, of place: Int) -> Bool {
        let start = place + Self.header + offset
        guard bytes.count - start >= text.utf8.count else { return false }
        return bytes[start..<start + text.utf8.count].elementsEqual(text.utf8)
    }

    private func word<Word: FixedWidthInteger>(at place: Int) -> Word {
        unsafe bytes.withUnsafeBytes { raw in
            unsafe Word(littleEndian: raw.loadUnaligned(fromByteOffset: place, as: Word.self))
        }
    }
}
