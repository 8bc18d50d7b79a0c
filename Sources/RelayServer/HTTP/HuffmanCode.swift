/// A Huffman code for the symbols of a text, shorter for those that are frequent (RFC 1951,
/// §3.2.2).
struct HuffmanCode: Sendable {
    /// The number of bits of each symbol's code; 0 for symbols that do not occur.
    let lengths: [Int]
    private let codes: [UInt32]

    /// Creates the optimal code, or a nearly optimal one if it would have codes of more than
    /// `longest` bits.
    ///
    /// - Complexity: O(*n* log *n*) in the number of symbols, repeated a few times.
    init(frequencies: [Int], longest: Int) {
        var counts = frequencies
        // A Huffman code needs at least two symbols.
        for symbol in counts.indices where counts.count(where: { $0 > 0 }) < 2 {
            counts[symbol] = max(1, counts[symbol])
        }
        var lengths = Self.lengths(of: counts)
        while lengths.contains(where: { $0 > longest }) {
            // The closer the frequencies are to each other, the shorter is the longest code.
            counts = counts.map { $0 > 0 ? $0 / 2 + 1 : 0 }
            lengths = Self.lengths(of: counts)
        }
        self.lengths = lengths
        codes = Self.codes(of: lengths)
    }

    /// Joins the two rarest parts until one is left; each join lengthens the codes of its symbols
    /// by a bit.
    private static func lengths(of counts: [Int]) -> [Int] {
        var lengths = [Int](repeating: 0, count: counts.count)
        // The parts stay ordered, with the rarest last.
        var parts = counts.enumerated().filter { $0.element > 0 }
            .map { (count: $0.element, symbols: [$0.offset]) }
            .sorted { $0.count > $1.count }
        while let first = parts.popLast(), let second = parts.popLast() {
            let symbols = first.symbols + second.symbols
            for symbol in symbols { lengths[symbol] += 1 }
            let count = first.count + second.count
            let place = parts.lastIndex { $0.count >= count }.map { $0 + 1 } ?? 0
            parts.insert((count, symbols), at: place)
        }
        return lengths
    }

    /// Assigns consecutive codes to the symbols of one length, in their order.
    private static func codes(of lengths: [Int]) -> [UInt32] {
        var next: UInt32 = 0
        var codes = [UInt32](repeating: 0, count: lengths.count)
        for length in 1...15 {
            next <<= 1
            for symbol in lengths.indices where lengths[symbol] == length {
                codes[symbol] = next
                next += 1
            }
        }
        return codes
    }

    /// Writes the code of a symbol that occurs.
    func write(_ symbol: Int, to output: inout BitWriter) {
        output.write(code: codes[symbol], bits: lengths[symbol])
    }
}

/// Writes bits, the lowest of each byte first.
struct BitWriter {
    private var bytes: [UInt8] = []
    private var pending: UInt32 = 0
    private var count = 0

    /// Writes a number, its lowest bit first.
    mutating func write(_ value: UInt32, bits: Int) {
        pending |= value << count
        count += bits
        while count >= 8 {
            bytes.append(UInt8(truncatingIfNeeded: pending))
            pending >>= 8
            count -= 8
        }
    }

    /// Writes a code, its highest bit first.
    mutating func write(code: UInt32, bits: Int) {
        var turned: UInt32 = 0
        for bit in 0..<bits where code >> bit & 1 == 1 { turned |= 1 << (bits - 1 - bit) }
        write(turned, bits: bits)
    }

    /// Returns everything that was written, filled up to a whole byte.
    mutating func finished() -> [UInt8] {
        if count > 0 { write(0, bits: 8 - count) }
        return bytes
    }
}
