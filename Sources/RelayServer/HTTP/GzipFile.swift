/// Makes gzip files (RFC 1952) of texts that are made once and served often.
///
/// It writes one deflate block (RFC 1951) with a Huffman code made for the text, and references to
/// repetitions within 32 KiB. The result has about a quarter of the size. It is a pure function;
/// its cost grows with the length of the text.
///
/// It is written by hand, because zlib would be another library that the package needs.
enum GzipFile {
    /// How many earlier places with the same beginning are searched for the longest repetition.
    private static let mostTries = 256
    /// The maximum distance of a repetition, and its maximum and minimum length (RFC 1951, §3.2.5).
    private static let (window, longest, shortest) = (32_768, 258, 3)

    /// Returns the gzip file that contains `bytes`.
    static func containing(_ bytes: [UInt8]) -> [UInt8] {
        // The header has no name, no time and no particular system.
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

    /// A part of the text: a byte, or a repetition of earlier bytes.
    private enum Part {
        case byte(UInt8)
        case repetition(length: Int, distance: Int)
    }

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        let parts = parts(of: bytes)
        var symbols = [Int](repeating: 0, count: 286)
        var distanceSymbols = [Int](repeating: 0, count: 30)
        // The symbol of the end of the block.
        symbols[256] = 1
        for part in parts {
            switch part {
            case .byte(let byte): symbols[Int(byte)] += 1
            case .repetition(let length, let distance):
                symbols[257 + row(of: length, in: lengths)] += 1
                distanceSymbols[row(of: distance, in: distances)] += 1
            }
        }
        let code = HuffmanCode(frequencies: symbols, longest: 15)
        let distanceCode = HuffmanCode(frequencies: distanceSymbols, longest: 15)
        var output = BitWriter()
        // The header of the last block, with Huffman codes of its own.
        output.write(0b101, bits: 3)
        write(code.lengths, distanceCode.lengths, to: &output)
        for part in parts {
            switch part {
            case .byte(let byte): code.write(Int(byte), to: &output)
            case .repetition(let length, let distance):
                let lengthRow = row(of: length, in: lengths)
                code.write(257 + lengthRow, to: &output)
                writeRest(of: length, lengths[lengthRow], to: &output)
                let distanceRow = row(of: distance, in: distances)
                distanceCode.write(distanceRow, to: &output)
                writeRest(of: distance, distances[distanceRow], to: &output)
            }
        }
        code.write(256, to: &output)
        return output.finished()
    }

    private static func parts(of bytes: [UInt8]) -> [Part] {
        var parts: [Part] = []
        var places = Repetitions(in: bytes)
        var place = 0
        var found = places.longest(at: place)
        while place < bytes.count {
            places.note(place)
            // If the repetition that begins a byte later is longer, one literal byte is worth it.
            let later = places.longest(at: place + 1)
            if let (length, distance) = found, length >= later?.length ?? 0 {
                parts.append(.repetition(length: length, distance: distance))
                for next in place + 1..<place + length { places.note(next) }
                place += length
                found = places.longest(at: place)
            } else {
                parts.append(.byte(bytes[place]))
                place += 1
                found = later
            }
        }
        return parts
    }

    /// The last and the earlier places of each sequence of three bytes.
    private struct Repetitions {
        private static let near = 4096

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
            // Three bytes at a great distance take as many bits as the bytes themselves.
            if best.length == shortest, best.distance > Self.near { return nil }
            return best.length < shortest ? nil : best
        }

        private func length(of candidate: Int, as place: Int) -> Int {
            let most = min(GzipFile.longest, bytes.count - place)
            var length = 0
            while length < most, bytes[candidate + length] == bytes[place + length] { length += 1 }
            return length
        }
    }

    // MARK: The codes (RFC 1951, §3.2.5 and §3.2.7)

    /// Writes the code lengths of both codes, in a Huffman code of their own.
    private static func write(
        _ lengths: [Int], _ distances: [Int], to output: inout BitWriter
    ) {
        let steps = steps(of: lengths + distances)
        var frequencies = [Int](repeating: 0, count: 19)
        for step in steps { frequencies[step.symbol] += 1 }
        let code = HuffmanCode(frequencies: frequencies, longest: 7)
        output.write(UInt32(lengths.count - 257), bits: 5)
        output.write(UInt32(distances.count - 1), bits: 5)
        let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
        output.write(UInt32(order.count - 4), bits: 4)
        for symbol in order { output.write(UInt32(code.lengths[symbol]), bits: 3) }
        for step in steps {
            code.write(step.symbol, to: &output)
            output.write(UInt32(step.rest), bits: step.bits)
        }
    }

    /// Returns the code lengths, with runs of equal ones shortened.
    private static func steps(of lengths: [Int]) -> [(symbol: Int, rest: Int, bits: Int)] {
        var steps: [(symbol: Int, rest: Int, bits: Int)] = []
        var rest = lengths[...]
        var last: Int?
        while let length = rest.first {
            let run = rest.prefix { $0 == length }.count
            let taken: Int
            switch run {
            case 11... where length == 0:
                taken = min(run, 138)
                steps.append((18, taken - 11, 7))
            case 3... where length == 0:
                taken = run
                steps.append((17, taken - 3, 3))
            case 3... where length == last:
                taken = min(run, 6)
                steps.append((16, taken - 3, 2))
            default:
                taken = 1
                steps.append((length, 0, 0))
            }
            last = length
            rest = rest.dropFirst(taken)
        }
        return steps
    }

    private static func row(of number: Int, in rows: [(base: Int, bits: Int)]) -> Int {
        rows.lastIndex { $0.base <= number } ?? 0
    }

    private static func writeRest(
        of number: Int, _ row: (base: Int, bits: Int), to output: inout BitWriter
    ) {
        output.write(UInt32(number - row.base), bits: row.bits)
    }

    /// The base length of each symbol from 257 on, and the number of extra bits.
    private static let lengths: [(base: Int, bits: Int)] = {
        var rows: [(base: Int, bits: Int)] = (3...10).map { ($0, 0) }
        for bits in 1...5 {
            for _ in 0..<4 { rows.append((rows.last.map { $0.base + (1 << $0.bits) } ?? 0, bits)) }
        }
        // The maximum length has a symbol of its own.
        rows.append((longest, 0))
        return rows
    }()

    /// The base distance of each symbol, and the number of extra bits.
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
