import NIOCore

/// Collects small parts of a body that arrive together, and passes them on together.
///
/// A client may send each byte as a chunk of its own. Passing each to the reader of the body took a
/// hundred times as long as the bytes themselves, and blocked the event loop's other connections.
struct SmallParts: Sendable {
    /// The size in bytes from which parts are passed on unchanged.
    private static let small = 1024
    /// The maximum size of a collected part in bytes.
    private static let most = 64 * 1024
    /// The number of small parts in one read without a pause; a client that writes a long text
    /// value by value has them.
    private static let free = 256
    /// The pause for each small part, about thirty times what it costs.
    private static let pause = Duration.microseconds(20)

    private var bytes = ByteBuffer()
    private var count = 0

    /// Adds a part.
    ///
    /// - Returns: The parts to pass on now, in order.
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

    /// Returns what was collected and not passed on.
    mutating func take() -> [ByteBuffer] {
        guard bytes.readableBytes > 0 else { return [] }
        defer { bytes = ByteBuffer() }
        return [bytes]
    }

    /// Returns the pause before the next read; `nil` if there is none.
    mutating func pauseAfterReading() -> Duration? {
        defer { count = 0 }
        return count > Self.free ? Self.pause * count : nil
    }
}
