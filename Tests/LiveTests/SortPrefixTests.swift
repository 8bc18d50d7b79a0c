import RelayModel
import RelayTestKit
import SimulationKit
import Testing

@testable import Live

/// Sort prefixes, which decide most comparisons, never contradict the order of the values.
@Suite struct SortPrefixTests {
    private static let corners: [FieldValue] = [
        .null, .bool(false), .bool(true), .integer(0), .integer(-1), .integer(.max),
        .integer(.min), .integer(1 << 53), .integer((1 << 53) + 1), .integer(.max - 1),
        .double(9_007_199_254_740_992), .double(0.5), .double(-0.5), .double(-0.0), .double(0),
        .double(.nan), .double(.infinity), .double(-.infinity), .double(9.3e18),
        .double(-9.3e18), .double(.leastNonzeroMagnitude), .double(-.leastNonzeroMagnitude),
        .timestamp(Timestamp(seconds: -1)), .timestamp(Timestamp(seconds: 1)),
        .timestamp(Timestamp(seconds: 1, nanoseconds: 5)), .string(""), .string("\0"),
        .string("a"), .string("a\0"), .string("abcdefg"), .string("abcdefgh"),
        .string("abcdefgi"), .string("é"), .string("e\u{301}"), .string("\u{10FFFF}"),
        .bytes([]), .bytes([0]), .bytes([1]), .bytes([1, 2]), .bytes([255]),
        .objectID(Array(repeating: 1, count: 12)), .uuid(UUIDBytes(high: 1, low: 2)),
        .uuid(UUIDBytes(high: .max, low: 0)), .list([.integer(1)]), .map(["a": .integer(1)]),
    ]

    @Test("a smaller prefix means a smaller value")
    func sortsAsValuesDo() {
        var generator = SeededGenerator(seed: 7)
        var values = Self.corners
        for _ in 0..<150 {
            values.append(.integer(.random(in: .min...(.max), using: &generator)))
            values.append(.double(Double(bitPattern: generator.next())))
            let letters = (0..<Int.random(in: 0...10, using: &generator)).map { _ in
                ["a", "b", "\0", "é", "😀"].randomElement(using: &generator) ?? ""
            }
            values.append(.string(letters.joined()))
        }
        var told = 0
        for left in values {
            for right in values where SortPrefix(left) < SortPrefix(right) {
                told += 1
                #expect(RecordOrder.compare(left, right) == .before, "\(left) \(right)")
            }
        }
        // A prefix that decides nothing would be correct too, so most prefixes must decide.
        #expect(told > values.count * values.count * 2 / 5)
    }
}
