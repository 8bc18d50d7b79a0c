import Foundation
import RelayTestKit
import Testing

@testable import RelayServer

/// Gzip files, read back by a reader that was written from the RFCs alone.
@Suite struct GzipFileTests {
    private static func texts() -> [[UInt8]] {
        var random = SeededGenerator(seed: 7)
        func bytes(_ count: Int, _ most: UInt8) -> [UInt8] {
            (0..<count).map { _ in UInt8.random(in: 0...most, using: &random) }
        }
        let long = bytes(3000, 255)
        return [
            [], [0], Array("aaaaaaaaaaaaaaaaaaaaaaaaa".utf8), bytes(10_000, 1),
            bytes(10_000, 255), [UInt8](repeating: 144, count: 1000),
            // As far back as a repetition may point, and one further.
            long + [UInt8](repeating: 7, count: 32_768 - 3000) + long,
            long + [UInt8](repeating: 7, count: 32_769 - 3000) + long,
        ]
    }

    @Test func `what was compressed is read back, and its checksum is that of the standard`() throws
    {
        for text in Self.texts() {
            let file = GzipFile.containing(text)
            #expect(try GzipReader.contents(of: file) == text, "\(text.count) bytes")
        }
        // RFC 1952's polynomial: the checksum of "123456789".
        #expect(
            GzipFile.containing(Array("123456789".utf8)).suffix(8).prefix(4)
                == [0x26, 0x39, 0xF4, 0xCB])
    }

    @Test func `the console's files come to less than half of themselves`() throws {
        for file in ConsoleFiles.all {
            let compressed = GzipFile.containing(file.bytes)
            #expect(try GzipReader.contents(of: compressed) == file.bytes, "\(file.name)")
        }
        let whole = ConsoleFiles.all.reduce(0) { $0 + $1.bytes.count }
        let small = ConsoleFiles.all.reduce(0) { $0 + GzipFile.containing($1.bytes).count }
        #expect(small * 2 < whole)
        // All there is, and not a page alone.
        #expect(small < 150_000)
    }
}

/// Reads a gzip file of one block with the fixed codes.
private struct GzipReader {
    struct Broken: Error {}

    private let bytes: [UInt8]
    private var place = 80

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    private mutating func bit() throws -> Int {
        guard place / 8 < bytes.count else { throw Broken() }
        defer { place += 1 }
        return Int(bytes[place / 8] >> UInt8(place % 8) & 1)
    }

    private mutating func bits(_ count: Int) throws -> Int {
        var value = 0
        for index in 0..<count { value |= try bit() << index }
        return value
    }

    private mutating func code(_ count: Int, from start: Int = 0) throws -> Int {
        var value = start
        for _ in 0..<count { value = value << 1 | (try bit()) }
        return value
    }

    /// A symbol by the fixed codes (RFC 1951, §3.2.6).
    private mutating func symbol() throws -> Int {
        let seven = try code(7)
        if seven < 24 { return 256 + seven }
        let eight = try code(1, from: seven)
        switch eight {
        case 48..<192: return eight - 48
        case 192..<200: return 280 + eight - 192
        default: return 144 + (try code(1, from: eight)) - 400
        }
    }

    static func contents(of file: [UInt8]) throws -> [UInt8] {
        var reader = GzipReader(file)
        return try reader.read()
    }

    private mutating func read() throws -> [UInt8] {
        guard bytes.prefix(4) == [31, 139, 8, 0], try bits(3) == 3 else { throw Broken() }
        var out: [UInt8] = []
        while true {
            let symbol = try symbol()
            if symbol < 256 {
                out.append(UInt8(symbol))
                continue
            }
            if symbol == 256 { break }
            let length = try length(symbol)
            let distance = try distance()
            guard distance <= out.count else { throw Broken() }
            for _ in 0..<length { out.append(out[out.count - distance]) }
        }
        let end = (place + 7) / 8
        let size = (0..<4).reduce(0) { $0 | Int(bytes[end + 4 + $1]) << (8 * $1) }
        guard bytes.count == end + 8, size == out.count else { throw Broken() }
        return out
    }

    private mutating func length(_ symbol: Int) throws -> Int {
        if symbol == 285 { return 258 }
        if symbol < 265 { return symbol - 254 }
        let more = (symbol - 261) / 4
        return ((4 + (symbol - 265) % 4) << more) + 3 + (try bits(more))
    }

    private mutating func distance() throws -> Int {
        let symbol = try code(5)
        if symbol < 4 { return symbol + 1 }
        let more = symbol / 2 - 1
        return ((2 + symbol % 2) << more) + 1 + (try bits(more))
    }
}
