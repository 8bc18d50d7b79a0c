/// Writes the parts of a snapshot: words in little-endian order, and byte runs after their length.
package struct ImageWriter: Sendable {
    /// The bytes written so far.
    package private(set) var bytes: [UInt8] = []

    /// Creates an empty image.
    package init() {}

    /// Reserves room for `count` further bytes.
    package mutating func reserve(_ count: Int) {
        bytes.reserveCapacity(bytes.count + count)
    }

    /// Appends a word.
    package mutating func append(_ word: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: word.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Appends bytes without their length.
    package mutating func append(raw content: some Collection<UInt8>) {
        bytes.append(contentsOf: content)
    }

    /// Appends the number of bytes, then the bytes.
    package mutating func append(bytes content: some Collection<UInt8>) {
        append(UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    /// Appends the length of a text, then its UTF-8.
    package mutating func append(_ text: String) {
        append(bytes: text.utf8)
    }
}

/// Reads what an ``ImageWriter`` wrote, and checks everything that it reads.
package struct ImageReader: Sendable {
    private let bytes: [UInt8]
    private var offset = 0

    /// Creates a reader at the beginning of an image.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether everything has been read.
    package var isAtEnd: Bool { offset == bytes.count }

    /// Reads the next word.
    ///
    /// - Throws: ``ImageDamage`` if the image ends first.
    package mutating func word<Word: FixedWidthInteger>(
        _ type: Word.Type = Word.self
    ) throws -> Word {
        let size = MemoryLayout<Word>.size
        guard bytes.count - offset >= size else { throw ImageDamage("it ends inside a number") }
        defer { offset += size }
        return unsafe bytes.withUnsafeBytes { raw in
            unsafe Word(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Word.self))
        }
    }

    /// Reads the next number, which must be in `range`.
    ///
    /// - Throws: ``ImageDamage`` if it is out of range, or the image ends first.
    package mutating func count(_ range: ClosedRange<Int>) throws -> Int {
        let number = try word(UInt64.self)
        guard let count = Int(exactly: number), range.contains(count) else {
            throw ImageDamage("a number is out of its range")
        }
        return count
    }

    /// Reads the next run of bytes.
    ///
    /// - Throws: ``ImageDamage`` if the image ends first.
    package mutating func run() throws -> ArraySlice<UInt8> {
        let count = try count(0...bytes.count)
        guard bytes.count - offset >= count else {
            throw ImageDamage("it ends inside a run of bytes")
        }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    /// Reads the next text.
    ///
    /// - Throws: ``ImageDamage`` if the image ends first, or the text is not UTF-8.
    package mutating func text() throws -> String {
        guard let text = String(utf8: try run()) else {
            throw ImageDamage("a text is not UTF-8")
        }
        return text
    }
}

/// The reason why a part of a snapshot cannot be used.
package struct ImageDamage: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, as a clause.
    package let description: String

    /// Creates an error with its reason, a clause.
    package init(_ reason: String) {
        description = reason
    }
}
