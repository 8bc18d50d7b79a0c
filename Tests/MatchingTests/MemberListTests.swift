import Matching
import PredicateLanguage
import RelayModel
import Testing

/// Lists of many constants, which rows search by a look-up instead of one by one.
@Suite struct MemberListTests: ArtworkSuite {
    typealias Node = RecordPredicate.Node

    /// Values that the rules of equality of different dialects compare differently.
    private static let odd: [FieldValue] = [
        .null, .bool(true), .bool(false), .integer(1), .double(-0.0), .double(0.5),
        .integer(1 << 53), .integer((1 << 53) + 1), .double(0x1p53), .integer(.max), .integer(.min),
        .string(""), .string("a"), .string("n7"), .string("\u{E9}"), .string("e\u{301}"),
        .bytes([0x6E, 0x37]), .timestamp(Timestamp(seconds: 7)),
        .timestamp(Timestamp(seconds: 7, nanoseconds: 1)), .double(.nan), .list([]),
        .list([.string("n7")]), .map(["name": .string("n7")]),
    ]

    /// Returns `count` constants of several kinds, in reverse order.
    private static func constants(_ rules: RecordPredicate.RuleSet, _ count: Int) -> [FieldValue] {
        var constants: [FieldValue] = [
            .string("n7"), .integer(7), .double(0.5), .null, .bool(true),
            .timestamp(Timestamp(seconds: 7)), .integer((1 << 53) + 1),
        ]
        if rules == .apple { constants += [.string("e\u{301}"), .bytes([0x6E, 0x37])] }
        for number in 0..<count {
            constants.append(.string("n\(number * 3)"))
            constants.append(.double(Double(number) * -2.5))
            constants.append(.integer(Int64(number) << 40))
        }
        return Array(constants.prefix(count).reversed())
    }

    @Test(arguments: [RecordPredicate.RuleSet.apple, .realm], [1, 3, 16, 17, 40, 700])
    func `the index agrees with the reference evaluation`(
        rules: RecordPredicate.RuleSet, count: Int
    ) throws {
        let constants = Self.constants(rules, count)
        var comparison = RecordPredicate.Comparison(
            .field("name"), .in, .constant(.list(constants)))
        comparison.rules = rules
        let isMember = Node.comparison(comparison)
        let other = Node.comparison(
            .init(.field("status"), .notEqual, .constant(.string("old"))))
        let index = SubscriptionIndex(seed: 14)
        var reference = ReferenceIndex()
        let nodes = [
            isMember, .not(isMember), .and([other, isMember]), .or([other, .not(isMember)]),
        ]
        for (serial, node) in nodes.enumerated() {
            let saved = try subscription(serial, RecordPredicate(node))
            index.insert(saved)
            reference.insert(saved)
        }
        let copy = try SubscriptionIndex(image: try index.image())
        let lists: [FieldValue] = [.list(constants), .list(constants.reversed())]
        let names = (0..<30).map { FieldValue.string("n\($0)") }
        for value in Self.odd + constants + lists + names {
            for status in ["old", "new"] {
                let posted = try change(["name": value, "status": .string(status)])
                let expected = reference.matches(for: posted)
                #expect(index.matches(for: posted) == expected, "\(value)")
                #expect(copy.matches(for: posted) == expected, "\(value)")
            }
        }
        for serial in nodes.indices { index.remove(serial: UInt64(serial)) }
        #expect(index.statistics.programs == 0)
    }
}
