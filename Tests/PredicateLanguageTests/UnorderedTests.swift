import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// Sets and dictionaries must be judged alike in every process, although the standard library
/// iterates over them in another order in each.
@Suite struct UnorderedTests {
    private static let elements: [FieldValue] = [
        .integer(7), .string("x"), .timestamp(Timestamp(seconds: 1)), .bool(true), .double(2.5),
        .list([.integer(1)]), .list([.integer(2)]), .null,
    ]
    /// Capacities that give sets of equal elements different orders.
    private static let capacities = [0, 20, 100, 1000, 5000, 20_000]

    private static func sets(_ elements: [FieldValue]) -> [FieldValue] {
        capacities.map { capacity in
            var set = Set<FieldValue>(minimumCapacity: capacity)
            for element in elements { set.insert(element) }
            return .set(set)
        }
    }

    private static func dictionaries(_ elements: [FieldValue]) -> [RecordFields] {
        capacities.map { capacity in
            var members = RecordFields(minimumCapacity: capacity)
            for (index, element) in elements.enumerated() { members["m\(index)"] = element }
            return members
        }
    }

    private func outcomes(
        _ format: String, on records: [RecordFields]
    ) throws -> Set<PredicateOutcome> {
        let predicate = try PreparedPredicate(try RecordPredicate(format: format))
        return Set(records.map { predicate.evaluate(on: $0) })
    }

    @Test(arguments: [
        ("ANY s > 5", PredicateOutcome.true), ("ALL s > 5", .false), ("NONE s > 5", .false),
        ("NOT ANY s > 5", .false), ("ANY s CONTAINS 'x'", .true),
    ])
    func `an element that decides does so even if others are errors`(
        format: String, expected: PredicateOutcome
    ) throws {
        let records =
            Self.sets(Self.elements).map { ["s": $0] }
            + Self.dictionaries(Self.elements).map { ["s": .map($0)] }
        #expect(try outcomes(format, on: records) == [expected])
    }

    @Test(arguments: ["ANY s > 100", "NONE s > 100"])
    func `an error remains if no element decides`(format: String) throws {
        for record in Self.sets(Self.elements).map({ ["s": $0] }) {
            let predicate = try PreparedPredicate(try RecordPredicate(format: format))
            guard case .error = predicate.evaluate(on: record) else {
                Issue.record("\(format) must be an error")
                return
            }
        }
    }

    @Test func `a value computed from a set or dictionary is the same in every order`() throws {
        let numbers: [FieldValue] = [.double(1e100), .integer(1), .double(-1e100), .double(3.5)]
        let sums = Self.sets(numbers).map { ["s": $0] }
        #expect(try outcomes("s.@sum > 2", on: sums).count == 1)
        let objects = Self.sets(
            [1, 2, 3].map { .map(["a": .integer($0)]) } + [.map(["a": .string("x")])])
        #expect(try outcomes("ANY s.a > 1", on: objects.map { ["s": $0] }).count == 1)
        #expect(try outcomes("ANYKEY > 5", on: Self.dictionaries(Self.elements)).count == 1)
    }

    private func realmOutcomes(
        _ rql: String, on records: [RecordFields]
    ) throws -> Set<PredicateOutcome> {
        let predicate = try PreparedPredicate(try RecordPredicate(rql: rql))
        return Set(records.map { predicate.evaluate(on: $0) })
    }

    /// Numbers whose sum depends on their order, and one number near that sum.
    private static let uneven: [FieldValue] = [
        .double(1e16), .double(1), .double(-1e16), .double(3.5), .integer(2), .double(0.1),
        .double(0.7), .double(-0.3), .double(1e15), .double(-1e15), .double(2.25),
    ]

    @Test(arguments: [
        ".@sum", ".@avg", ".@values.@sum", ".@values.@avg", "[*].@sum", "[*].@avg",
    ])
    func `a sum by Realm's rules is the same in every order`(end: String) throws {
        let records =
            end.contains("@values")
            ? Self.dictionaries(Self.uneven).map { ["s": FieldValue.map($0)] }
            : Self.sets(Self.uneven).map { ["s": $0] }
        for bound in stride(from: -4.0, through: 16, by: 0.25) {
            #expect(try realmOutcomes("s\(end) > \(bound)", on: records).count == 1)
        }
    }

    @Test func `a sum over members of objects or a dictionary is the same in every order`() throws {
        let objects = Self.sets(Self.uneven.map { .map(["a": $0]) }).map { ["s": $0] }
        let dictionaries = Self.dictionaries(Self.uneven).map { ["s": FieldValue.map($0)] }
        for bound in stride(from: -4.0, through: 16, by: 0.25) {
            #expect(try realmOutcomes("s.@sum.a > \(bound)", on: objects).count == 1)
            #expect(try realmOutcomes("s.@sum > \(bound)", on: dictionaries).count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a sum over more elements than are sorted is the same in every order`(isRealm: Bool) throws
    {
        let many = Self.uneven + (1...12_000).map { .double(Double($0) * 1.1) }
        let records = [0, 30_000, 60_000, 120_000].map { capacity in
            var set = Set<FieldValue>(minimumCapacity: capacity)
            for element in many { set.insert(element) }
            return ["s": FieldValue.set(set)]
        }
        // The elements are added in this order: integers first, then ascending. The sum is one of
        // the bounds, so a difference of one bit would show.
        let sum = many.map(\.asDouble).sorted().reduce(2) { $1 == 2 ? $0 : $0 + $1 }
        for bound in [sum.nextDown, sum, sum.nextUp] {
            let text = "s.@sum >= \(bound)"
            let found = try isRealm ? realmOutcomes(text, on: records) : outcomes(text, on: records)
            #expect(found.count == 1)
        }
    }
}

private extension FieldValue {
    var asDouble: Double {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: .nan
        }
    }
}
