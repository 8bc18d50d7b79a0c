import RelayModel
import Testing

/// The laws of the order in which records are sorted.
@Suite struct RecordOrderTests {
    private static let values: [FieldValue] = [
        .null, .bool(false), .bool(true), .integer(0), .integer(-1), .integer(.max),
        .integer(.min), .integer(1 << 53), .integer((1 << 53) + 1), .double(9_007_199_254_740_992),
        .double(0.5), .double(-0.0), .double(.nan), .double(.infinity), .double(-.infinity),
        .double(9.3e18), .double(-9.3e18), .timestamp(Timestamp(seconds: 1)), .string(""),
        .string("é"), .string("e\u{301}"), .string("z"), .bytes([1]), .bytes([1, 2]),
        .objectID(Array(repeating: 1, count: 12)), .uuid(UUIDBytes(high: 1, low: 2)),
        .list([.integer(1)]), .map(["a": .integer(1)]),
    ]

    private func number(_ outcome: RecordOrder.Outcome) -> Int {
        switch outcome {
        case .before: -1
        case .same: 0
        case .after: 1
        }
    }

    @Test("the order is total, and the same from both sides")
    func isAntisymmetric() {
        for left in Self.values {
            #expect(RecordOrder.compare(left, left) == .same)
            for right in Self.values {
                #expect(
                    number(RecordOrder.compare(left, right))
                        == -number(RecordOrder.compare(right, left)))
            }
        }
    }

    @Test("the order is transitive")
    func isTransitive() {
        for first in Self.values {
            for second in Self.values where RecordOrder.compare(first, second) != .after {
                for third in Self.values where RecordOrder.compare(second, third) != .after {
                    #expect(
                        RecordOrder.compare(first, third) != .after, "\(first) \(second) \(third)")
                }
            }
        }
    }

    @Test("numbers are compared exactly")
    func numbersAreExact() {
        let doubled = FieldValue.double(9_007_199_254_740_992)
        #expect(RecordOrder.compare(.integer(1 << 53), doubled) == .same)
        #expect(RecordOrder.compare(.integer((1 << 53) + 1), doubled) == .after)
        #expect(RecordOrder.compare(.integer(.max), .double(9.3e18)) == .before)
        #expect(RecordOrder.compare(.bool(true), .integer(1)) == .same)
        #expect(RecordOrder.compare(.double(.nan), .double(-.infinity)) == .before)
        #expect(RecordOrder.compare(.integer(.min), .double(.nan)) == .after)
    }

    @Test("canonically equivalent texts are two values")
    func textsAreBytes() {
        #expect(RecordOrder.compare(.string("e\u{301}"), .string("é")) == .before)
    }
}
