/// A segment as it is shipped: its header and its frames.
package struct LogSegment: Sendable, Hashable {
    package let header: SegmentHeader
    package let bytes: [UInt8]
    /// The offset in ``bytes`` at which the frames begin.
    let start: Int

    /// Decodes a segment; `nil` if it is not one, or not as long as its header says.
    package init?(_ bytes: [UInt8]) {
        guard let (header, start) = SegmentHeader.read(bytes),
            bytes.count - start == header.count * header.generation.frameBytes
        else { return nil }
        self.header = header
        self.bytes = bytes
        self.start = start
    }

    /// Whether the checksum of every frame follows from the one before it.
    package var isWhole: Bool {
        var sum = header.before
        let frames = Array(bytes[start...])
        return header.generation.follow(frames, from: &sum) == header.count
            && sum == header.after
    }

    /// Returns the offset in ``bytes`` at which frame `number` of the generation begins.
    func offset(of number: Int) -> Int {
        start + (number - header.first) * header.generation.frameBytes
    }

    /// Returns whether the segment begins where `earlier` ends.
    package func follows(_ earlier: SegmentHeader) -> Bool {
        guard header.chain == earlier.chain, header.sequence == earlier.sequence + 1 else {
            return false
        }
        if header.generation == earlier.generation {
            return header.first == earlier.last + 1 && header.before == earlier.after
        }
        return header.first == 1 && header.before == header.generation.seed
    }
}
