import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// Numbers are equal by value, whatever their form, also as elements of collections.
@Suite struct NumberFormTests {
    private static let fields: RecordFields = [
        "list": .list([.double(1), .integer(2), .bool(true)]),
        "kids": .list([.map(["age": .integer(1)]), .map(["age": .double(1)])]),
        "pairs": .list([.list([.integer(1)]), .list([.double(1)])]),
    ]

    @Test(arguments: [
        "(list INTERSECT {1, 2}) == {1, 2}", "(list MINUS {1}) == {2}",
        "(list UNION {2.0, 3}) == {1, 2, 3}", "({1, 2} MINUS list) == {}",
        "({1.0, 5} INTERSECT list) == {1}", "kids.@distinctUnionOfObjects.age == {1}",
        "(pairs INTERSECT {{1}}).@count == 1", "mode(list) == {1}",
        "CAST(list, 'NSSet') == CAST({1, 2}, 'NSSet')",
        "CAST(pairs, 'NSSet') == CAST({{1}}, 'NSSet')",
    ])
    func `equal numbers are the same element, whatever their form`(format: String) throws {
        let prepared = try PreparedPredicate(RecordPredicate(format: format))
        #expect(prepared.evaluate(on: Self.fields) == .true)
    }
}
