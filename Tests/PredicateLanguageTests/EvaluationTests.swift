import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

@Suite struct EvaluationTests {
    /// The record of the worked examples in the reference documentation.
    private static let record: RecordFields = [
        "name": .string("Alice"), "age": .integer(30), "nick": .null,
        "tags": .list([.string("red"), .string("Green")]),
        "kids": .list([.map(["age": .integer(3)]), .map(["age": .integer(9)])]),
        "addr": .map(["city": .string("Paris")]),
        "when": .timestamp(Timestamp(seconds: 1_700_000_000)),
        "big": .integer(9_007_199_254_740_993), "empty": .list([]),
        "place": Location(latitude: 48.8566, longitude: 2.3522).map(FieldValue.location) ?? .null,
        "accent": .string("Cafe\u{301} Ünïted"), "street": .string("Straße"),
    ]

    @Test(arguments: [
        "name ==[c] 'ALICE' && age BETWEEN {30, 40}", "nick != 'x'", "NOT nick < 'x'",
        "addr.zip == nil", "addr.zip.deep == nil", "ANY kids.age > 8 AND ALL kids.age > 2",
        "NOT NONE tags ==[c] 'GREEN'", "NOT tags CONTAINS 're'", "ANY tags CONTAINS 're'",
        "'lic' IN name", "name IN {'Alice'}", "name LIKE 'Al?ce'", "NOT name LIKE 'Alice?'",
        "NOT name LIKE 'Al'", "NOT name MATCHES 'lic'", "name MATCHES '.*lic.*'",
        "NOT name CONTAINS ''", "NOT nick CONTAINS ''", "(age + 1) * 2 == 62", "-age < 0",
        "age / 4 == 7", "age / 4.0 == 7.5", "when == CAST(721692800, 'NSDate')",
        "SUBQUERY(kids, $k, $k.age > 5).@count == 1", "kids.@max.age == 9",
        "tags[LAST] == 'Green'", "name != '%@'", "nil <= nick AND nick >= nil",
        "NOT nick < nil AND NOT nick > nil", "NOT nick BETWEEN {nil, nil}",
        "nick IN {NULL, 'a'} AND NOT nick IN {'a'}", "NOT name IN nil AND NOT nick CONTAINS 'x'",
        "big == 9007199254740993 AND big != 9007199254740992.0", "big > 9007199254740992.0",
        "big < 1e300 AND big > -1e300", "age == 30.0 AND age == TRUE + 29", "TRUE == 1 AND NO == 0",
        "name != 3 AND NOT name == 3", "tags != 'red' AND NOT tags == 'red'",
        "{name, age} == {'Alice', 30}", "kids.age == {3, 9}", "tags.@count == 2",
        "nope.@count == nil AND NOT nope.@count == 0", "empty.@count == 0 AND empty.@sum.x == 0",
        "empty.@avg.x == 0 AND empty.@min.x == nil", "empty[FIRST] == nil", "tags[SIZE] == 2",
        "ALL empty == 1 AND NONE empty == 1 AND NOT ANY empty == 1",
        "ALL nope == 1 AND NONE nope == 1 AND NOT ANY nope == 1", "name.length == 5",
        "accent == 'Café Ünïted'", "accent BEGINSWITH 'Café'", "NOT accent BEGINSWITH 'Cafe'",
        "accent BEGINSWITH[d] 'Cafe'", "accent CONTAINS[cd] 'UNITED'", "accent LIKE[cd] 'cafe *'",
        "accent MATCHES[cd] 'CAFE .+'", "accent LIKE '????\\u0020*'", "'a😀b' LIKE 'a?b'",
        "'a😀b' MATCHES 'a.b'", "street !=[c] 'strasse'", "street ==[c] 'STRAßE'",
        "'ΣΑΣ' ==[c] 'σας'", "'i' !=[c] 'ı'", "'a*b' LIKE 'a\\*b' AND NOT 'axb' LIKE 'a\\*b'",
        "'Aa' < 'ab' AND 'B' < 'a' AND 'a' <[c] 'B'", "'x' IN 'wxyz'", "age & 2 == 2",
        "age | 1 == 31 AND age ^ 31 == 1 AND ~age == -31 AND age << 1 == 60 AND age >> 1 == 15",
        "2 ** 3 ** 2 == 512 AND -2 ** 2 == 4", "modulus:by:(age, 7) == 2",
        "sum(1, 2, 3) == 6 AND average({1, 2}) == 1.5 AND median({3, 1, 2}) == 2",
        "mode({1, 2, 2}) == {2} AND stddev({2, 4}) == 1 AND max(1, 5, 3) == 5",
        "abs(-3) == 3 AND trunc(-1.5) == -1 AND floor(-1.5) == -2 AND ceiling(1.2) == 2",
        "sqrt(16) == 4 AND log(1000) == 3 AND ln(1) == 0 AND exp(0) == 1",
        "uppercase(name) == 'ALICE' AND lowercase(name) == 'alice' AND length(name) == 5",
        "now() == CAST(721692801, 'NSDate') AND now() > when",
        "CAST(when, 'NSNumber') == 721692800 AND CAST(age, 'NSString') == '30'",
        "distanceToLocation:fromLocation:(place, CAST({48.8566, 2.3522}, 'CLLocation')) < 1",
        "distanceToLocation:fromLocation:(place, CAST({51.5074, -0.1278}, 'CLLocation')) < 344000",
        "{1, 2} UNION {2, 3} == {1, 2, 3} AND {1, 2} INTERSECT {2} == {2} AND {1, 2} MINUS {2} == {1}",
        "TERNARY(age > 18, 'adult', 'child') == 'adult'", "ANYKEY == 'Alice'",
        "kids.@distinctUnionOfObjects.age == {3, 9}", "addr['city'] == 'Paris'",
        "kids.age.@max.self == 9 AND kids.age.@sum.self == 12 AND age.self == 30",
        "tags.@distinctUnionOfObjects.self CONTAINS 'red' AND ANY tags.self == 'red'",
        "addr.self == nil AND nick.self == nil AND name.self.length == 5",
        "allTokens TOKENMATCHES[cdl] 'nobody alice' AND NOT allTokens TOKENMATCHES 'the of'",
        "ANY tokenize:using:('nobody alice', 'Cdl') IN allTokens",
        "NOT ALL tokenize:using:('nobody alice', 'Cdl') IN allTokens",
        "self CONTAINS 'cafe' AND NOT self CONTAINS 'caf'", "age IN {1, 2, 3, 4, 5, 30.0}",
        "name IN[c] {'a', 'b', 'c', 'd', 'ALICE'}", "'public.TEXT' UTI-EQUALS 'public.text'",
    ])
    func `the predicate holds`(format: String) throws {
        let predicate = try RecordPredicate(format: format)
        let outcome = predicate.evaluate(
            on: Self.record, now: Timestamp(seconds: 1_700_000_001))
        #expect(outcome == .true)
    }

    @Test func `a nil member differs from a missing one`() throws {
        let predicate = try RecordPredicate(format: "a == b")
        let one = FieldValue.map(["x": .null])
        let other = FieldValue.map(["y": .integer(1)])
        #expect(predicate.evaluate(on: ["a": one, "b": other]) == .false)
        #expect(predicate.evaluate(on: ["a": other, "b": one]) == .false)
        #expect(predicate.evaluate(on: ["a": one, "b": one]) == .true)
    }

    @Test(
        arguments: [
            ("age > '3'", .unordered(left: "a number", right: "a text")),
            ("NOT age > '3'", .unordered(left: "a number", right: "a text")),
            ("kids.age > 8", .unordered(left: "a list", right: "a number")),
            ("age BEGINSWITH '3'", .wrongKind(operation: "BEGINSWITH", found: "a number")),
            ("nick + 1 == 1", .wrongKind(operation: "`+`", found: "nil")),
            ("age / 0 == 1", .divisionByZero), ("tags[5] == 1", .indexOutOfRange(5, count: 2)),
            ("ANY age > 3", .quantifierOnScalar(found: "a number")),
            ("age BETWEEN {1}", .badBounds), ("age BETWEEN name", .badBounds),
            ("$x == 1", .unboundVariable("x")), ("now() > when", .noClock),
            ("9223372036854775807 + age > 0", .overflow),
            ("age IN 5", .wrongKind(operation: "IN", found: "a number")),
            ("when > 3", .unordered(left: "a date", right: "a number")),
            ("CAST(name, 'NSDate') > when", .badCast(found: "a text", type: "NSDate")),
        ] as [(String, EvaluationError)])
    func `an operand without an answer makes the whole predicate an error`(
        format: String, error: EvaluationError
    ) throws {
        let outcome = try RecordPredicate(format: format).evaluate(on: Self.record)
        #expect(outcome == .error(error))
    }

    @Test(arguments: [("age == 1 AND age > 'x'", false), ("age == 30 OR age > 'x'", true)])
    func `an error after a deciding operand is ignored`(format: String, holds: Bool) throws {
        let outcome = try RecordPredicate(format: format).evaluate(on: Self.record)
        #expect(outcome == (holds ? .true : .false))
    }

    @Test func `a trace says what was compared and why it came out so`() throws {
        let predicate = try RecordPredicate(format: "price < 100 OR name == nick OR 1 == 1")
        let trace = try PreparedPredicate(predicate).trace(
            onValue: .map(["price": .integer(120), "name": .string("A")]))
        #expect(trace.outcome == .true)
        #expect(
            trace.text == """
                `price < 100` is false: price is 120
                `name == nick` is false: name is "A", nick is nil
                `1 == 1` is true: both sides are constants
                """)
        #expect(
            trace.json == [
                [
                    "comparison": "price < 100", "left": 120, "right": 100, "outcome": false,
                    "reason": "price is 120",
                ],
                [
                    "comparison": "name == nick", "left": "A", "right": .null, "outcome": false,
                    "reason": "name is \"A\", nick is nil",
                ],
                [
                    "comparison": "1 == 1", "left": 1, "right": 1, "outcome": true,
                    "reason": "both sides are constants",
                ],
            ])
    }

    @Test func `a trace ends at the error`() throws {
        let predicate = try RecordPredicate(format: "age > '3' OR TRUEPREDICATE")
        let trace = try PreparedPredicate(predicate).trace(onValue: .map(["age": .integer(3)]))
        #expect(trace.outcome == .error(.unordered(left: "a number", right: "a text")))
        #expect(
            trace.text
                == "`age > \"3\"` has no answer: a number cannot be ordered against a text, age is 3"
        )
    }
}
