import Foundation
import RelayTestKit
import Testing

@testable import RelayServer

/// Gzip files, decompressed by gzip itself.
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
            // The greatest distance at which a repetition may be referred to, and one more.
            long + [UInt8](repeating: 7, count: 32_768 - 3000) + long,
            long + [UInt8](repeating: 7, count: 32_769 - 3000) + long,
        ]
    }

    @Test func `gzip reads compressed files back with a valid checksum`() throws {
        for text in Self.texts() {
            let file = GzipFile.containing(text)
            #expect(try GzipReader.contents(of: file) == text, "\(text.count) bytes")
        }
        // RFC 1952's polynomial: the checksum of "123456789".
        #expect(
            GzipFile.containing(Array("123456789".utf8)).suffix(8).prefix(4)
                == [0x26, 0x39, 0xF4, 0xCB])
    }

    @Test(arguments: [(2, 15), (19, 7), (30, 15), (286, 15)])
    func `code lengths are within the limit and complete`(
        symbols: Int, longest: Int
    ) {
        // Fibonacci numbers as frequencies make the longest codes.
        var counts = [1, 1]
        while counts.count < min(symbols, 60) { counts.append(counts.suffix(2).reduce(0, +)) }
        counts += Array(repeating: 1, count: symbols - counts.count)
        for frequencies in [counts, counts.map { _ in 0 }, counts.map { _ in 7 }] {
            let lengths = HuffmanCode(frequencies: frequencies, longest: longest).lengths
            #expect(lengths.max() ?? 0 <= longest)
            let used = lengths.reduce(0) { $1 > 0 ? $0 + 1 << (15 - $1) : $0 }
            #expect(used == 1 << 15)
        }
    }

    @Test func `the console's files compress to less than half`() throws {
        for file in ConsoleFiles.all {
            let compressed = GzipFile.containing(file.bytes)
            #expect(try GzipReader.contents(of: compressed) == file.bytes, "\(file.name)")
        }
        let whole = ConsoleFiles.all.reduce(0) { $0 + $1.bytes.count }
        let small = ConsoleFiles.all.reduce(0) { $0 + GzipFile.containing($1.bytes).count }
        #expect(small * 2 < whole)
        // All files together, and not only a page.
        #expect(small < 150_000)
    }
}

/// Decompresses a file with gzip.
private enum GzipReader {
    struct Broken: Error { let status: Int32 }

    static func contents(of file: [UInt8]) throws -> [UInt8] {
        let folder = try TemporaryStore()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.path + ".gz"
        try Data(file).write(to: URL(filePath: path))
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        try? output.fileHandleForWriting.close()
        let contents = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Broken(status: process.terminationStatus)
        }
        return Array(contents)
    }
}
