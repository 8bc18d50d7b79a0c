/// Writes the parts of a snapshot: words in little-endian order, and bytes with their length.
package struct ImageWriter: Sendable {
    /// What was written.
    package private(set) var bytes: [UInt8] = []

    /// Begins an image.
    package init() {}

    /// Makes room for `count` further bytes.
    package mutating func reserve(_ count: Int) {
        bytes.reserveCapacity(bytes.count + count)
    }

    /// Appends a word.
    package mutating func append(_ word: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: word.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Appends bytes as they are.
    package mutating func append(raw content: some Collection<UInt8>) {
        bytes.append(contentsOf: content)
    }

    /// Appends bytes, with their number before them.
    package mutating func append(bytes content: some Collection<UInt8>) {
        append(UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    /// Appends a text, with its length before it.
    package mutating func append(_ text: String) {
        append(bytes: text.utf8)
    }
}

/// Reads what an ``ImageWriter`` wrote, and trusts none of it.
package struct ImageReader: Sendable {
    private let bytes: [UInt8]
    private var offset = 0

    /// Reads an image from its beginning.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether everything was read.
    package var isAtEnd: Bool { offset == bytes.count }

    /// The next word.
    ///
    /// - Throws: ``ImageDamage`` if the image ends before.
    package mutating func word<Word: FixedWidthInteger>(
        _ type: Word.Type = Word.self
    ) throws -> Word {
        let size = MemoryLayout<Word>.size
        guard bytes.count - offset >= size else { throw ImageDamage("it ends inside a word") }
        defer { offset += size }
        return unsafe bytes.withUnsafeBytes { raw in
            unsafe Word(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Word.self))
        }
    }

    /// The next number, which must lie in `range`.
    ///
    /// - Throws: ``ImageDamage`` if it does not, or the image ends before.
    package mutating func count(_ range: ClosedRange<Int>) throws -> Int {
        let number = try word(UInt64.self)
        guard let count = Int(exactly: number), range.contains(count) else {
            throw ImageDamage("a number is out of its range")
        }
        return count
    }

    /// The next run of bytes.
    ///
    /// - Throws: ``ImageDamage`` if the image ends before it does.
    package mutating func run() throws -> ArraySlice<UInt8> {
        let count = try count(0...bytes.count)
        guard bytes.count - offset >= count else { throw ImageDamage("it ends inside a run") }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    /// The next text.
    ///
    /// - Throws: ``ImageDamage`` if the image ends before it does, or it is not UTF-8.
    package mutating func text() throws -> String {
        guard let text = String(utf8: try run()) else {
            throw ImageDamage("a text is not UTF-8")
        }
        return text
    }
}

/// Says why a part of a snapshot cannot be used.
package struct ImageDamage: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, as a clause.
    package let description: String

    /// Says why.
    package init(_ reason: String) {
        description = reason
    }
}
