import NIOCore

/// Parts of a body that came together, and go on together.
///
/// A client may send each byte as a chunk of its own. To hand each on to whoever reads the body
/// took a hundred times as long as the bytes themselves, and no other connection of the event loop
/// had its turn meanwhile.
struct SmallParts: Sendable {
    /// Longer ones go on as they are.
    private static let small = 1024
    /// Bytes that go on at a time.
    private static let most = 64 * 1024
    /// Small parts of one reading that cost their client nothing: those of who writes a long text
    /// value by value.
    private static let free = 256
    /// How long nothing is read for each small part: some thirty times what it takes.
    private static let pause = Duration.microseconds(20)

    private var bytes = ByteBuffer()
    private var count = 0

    /// Takes a part.
    ///
    /// - Returns: What goes on now, in order.
    mutating func add(_ part: ByteBuffer) -> [ByteBuffer] {
        guard part.readableBytes < Self.small else { return take() + [part] }
        count += 1
        if bytes.readableBytes == 0 {
            bytes = part
        } else {
            bytes.writeImmutableBuffer(part)
        }
        return bytes.readableBytes < Self.most ? [] : take()
    }

    /// What has not gone on.
    mutating func take() -> [ByteBuffer] {
        guard bytes.readableBytes > 0 else { return [] }
        defer { bytes = ByteBuffer() }
        return [bytes]
    }

    /// How long nothing is read after a reading; `nil` goes on at once.
    mutating func pauseAfterReading() -> Duration? {
        defer { count = 0 }
        return count > Self.free ? Self.pause * count : nil
    }
}
