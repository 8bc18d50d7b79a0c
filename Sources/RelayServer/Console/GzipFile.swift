/// Makes gzip files (RFC 1952) of texts that are made once and served often.
///
/// One deflate block (RFC 1951) with the fixed codes: what repeats within 32 KiB is said once. A
/// text comes to a third or less; a table of codes of its own would save a tenth more. Pure; its
/// cost grows with the length of the text.
enum GzipFile {
    /// How many earlier places that begin alike are looked at for the longest repetition.
    private static let mostTries = 16
    /// How far back a repetition may point, and how long it may be (RFC 1951, §3.2.5).
    private static let (window, longest, shortest) = (32_768, 258, 3)

    /// The file that has `bytes` in it.
    static func containing(_ bytes: [UInt8]) -> [UInt8] {
        // No name, no time, made on any system.
        var file: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        file += deflated(bytes)
        for number in [checksum(of: bytes), UInt32(truncatingIfNeeded: bytes.count)] {
            for shift in stride(from: UInt32(0), to: 32, by: 8) {
                file.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        return file
    }

    // MARK: Deflate

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var output = BitWriter()
        // The last block, with the fixed codes.
        output.write(0b011, bits: 3)
        var places = Repetitions(in: bytes)
        var place = 0
        while place < bytes.count {
            if let (length, distance) = places.longest(at: place) {
                write(length: length, to: &output)
                write(distance: distance, to: &output)
                for next in place..<place + length { places.note(next) }
                place += length
            } else {
                write(symbol: Int(bytes[place]), to: &output)
                places.note(place)
                place += 1
            }
        }
        write(symbol: 256, to: &output)
        return output.finished()
    }

    /// Where each three bytes stood last, and before that.
    private struct Repetitions {
        private let bytes: [UInt8]
        private var heads = [Int32](repeating: -1, count: 1 << 15)
        private var earlier: [Int32]

        init(in bytes: [UInt8]) {
            self.bytes = bytes
            earlier = [Int32](repeating: -1, count: bytes.count)
        }

        private func key(at place: Int) -> Int? {
            guard place + 2 < bytes.count else { return nil }
            let word =
                UInt32(bytes[place]) << 16 | UInt32(bytes[place + 1]) << 8
                | UInt32(bytes[place + 2])
            return Int((word &* 0x9E37_79B1) >> 17)
        }

        mutating func note(_ place: Int) {
            guard let key = key(at: place) else { return }
            earlier[place] = heads[key]
            heads[key] = Int32(truncatingIfNeeded: place)
        }

        func longest(at place: Int) -> (length: Int, distance: Int)? {
            guard let key = key(at: place) else { return nil }
            var best = (length: shortest - 1, distance: 0)
            var candidate = Int(heads[key])
            for _ in 0..<mostTries {
                guard candidate >= 0, place - candidate <= window else { break }
                let length = length(of: candidate, as: place)
                if length > best.length { best = (length, place - candidate) }
                candidate = Int(earlier[candidate])
            }
            return best.length < shortest ? nil : best
        }

        private func length(of candidate: Int, as place: Int) -> Int {
            let most = min(GzipFile.longest, bytes.count - place)
            var length = 0
            while length < most, bytes[candidate + length] == bytes[place + length] { length += 1 }
            return length
        }
    }

    // MARK: The fixed codes (RFC 1951, §3.2.6)

    private static func write(symbol: Int, to output: inout BitWriter) {
        switch symbol {
        case ..<144: output.write(code: UInt32(0x30 + symbol), bits: 8)
        case ..<256: output.write(code: UInt32(0x190 + symbol - 144), bits: 9)
        case ..<280: output.write(code: UInt32(symbol - 256), bits: 7)
        default: output.write(code: UInt32(0xC0 + symbol - 280), bits: 8)
        }
    }

    private static func write(length: Int, to output: inout BitWriter) {
        let row = lengths.lastIndex { $0.base <= length } ?? 0
        write(symbol: 257 + row, to: &output)
        output.write(UInt32(length - lengths[row].base), bits: lengths[row].bits)
    }

    private static func write(distance: Int, to output: inout BitWriter) {
        let row = distances.lastIndex { $0.base <= distance } ?? 0
        output.write(code: UInt32(row), bits: 5)
        output.write(UInt32(distance - distances[row].base), bits: distances[row].bits)
    }

    /// The lengths that each symbol from 257 on begins with, and the bits that say how much more.
    private static let lengths: [(base: Int, bits: Int)] = {
        var rows: [(base: Int, bits: Int)] = (3...10).map { ($0, 0) }
        for bits in 1...5 {
            for _ in 0..<4 { rows.append((rows.last.map { $0.base + (1 << $0.bits) } ?? 0, bits)) }
        }
        // The longest has a symbol of its own.
        rows.append((longest, 0))
        return rows
    }()

    /// The same of distances.
    private static let distances: [(base: Int, bits: Int)] = {
        var rows: [(base: Int, bits: Int)] = (1...4).map { ($0, 0) }
        for bits in 1...13 {
            for _ in 0..<2 { rows.append((rows.last.map { $0.base + (1 << $0.bits) } ?? 0, bits)) }
        }
        return rows
    }()

    // MARK: The checksum (RFC 1952, §8)

    private static let checksums: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { sum, _ in
            sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1
        }
    }

    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { checksums[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ $0 >> 8 }
    }
}

/// Writes bits, the lowest of each byte first.
private struct BitWriter {
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

    /// All that was written, to a whole byte.
    mutating func finished() -> [UInt8] {
        if count > 0 { write(0, bits: 8 - count) }
        return bytes
    }
}
