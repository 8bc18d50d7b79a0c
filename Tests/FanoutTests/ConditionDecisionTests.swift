import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

@testable import Fanout

/// The comparisons that decided a condition, and their places in its text.
@Suite struct ConditionDecisionTests {
    /// A condition, a record, and the texts of the comparisons that decided.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String { "\(condition) on \(fields)" }
        let condition: String
        let fields: [String: Int64]
        let decided: [String]

        init(_ condition: String, _ fields: [String: Int64], _ decided: [String]) {
            self.condition = condition
            self.fields = fields
            self.decided = decided
        }
    }

    static let cases = [
        Case("a == 1", ["a": 1], ["a == 1"]),
        Case("a == 1", ["a": 2], ["a == 1"]),
        Case("NOT a == 1", ["a": 1], ["a == 1"]),
        Case("a == 1 AND b == 2", ["a": 1, "b": 2], ["a == 1", "b == 2"]),
        Case("a == 1 AND b == 2", ["a": 1, "b": 0], ["b == 2"]),
        Case("a == 1 OR b == 2", ["a": 0, "b": 2], ["b == 2"]),
        Case("a == 1 OR b == 2", ["a": 0, "b": 0], ["a == 1", "b == 2"]),
        Case("NOT (a == 1 OR b == 2)", ["a": 0, "b": 2], ["b == 2"]),
        Case("NOT (a == 1 OR b == 2)", ["a": 0, "b": 0], ["a == 1", "b == 2"]),
        Case("NOT (a == 1 AND b == 2)", ["a": 1, "b": 0], ["b == 2"]),
        Case("a < 100 AND NOT (b == 2)", ["a": 50, "b": 2], ["b == 2"]),
        Case("(a == 1 OR a == 2) AND b == 2", ["a": 2, "b": 0], ["b == 2"]),
        Case("(a == 1 OR a == 2) AND b == 2", ["a": 2, "b": 2], ["a == 2", "b == 2"]),
        Case("(b == 2 AND a < 100) OR a < 10", ["a": 50, "b": 0], ["b == 2", "a < 10"]),
        Case("TRUEPREDICATE AND NOT (FALSEPREDICATE OR a == 1)", ["a": 1], ["a == 1"]),
        Case("a > 0 AND 6 / b > 1", ["a": 1, "b": 0], ["6 / b > 1"]),
        Case(
            "SUBQUERY({1, 2}, $x, $x == 1 OR $x == 2).@count > 2 OR a == 1", ["a": 1],
            ["a == 1"]),
    ]

    @Test(arguments: cases) func `the deciding comparisons are found in the text`(
        _ one: Case
    ) throws {
        let condition = try RecordPredicate(format: one.condition)
        let fields = one.fields.mapValues { FieldValue.integer($0) }
        let trace = try PreparedPredicate(condition).trace(onValue: .map(fields))
        let decision = ConditionDecision(of: condition, judgedAs: condition, trace)
        let text = Array(condition.canonicalText.utf8)
        let places = condition.comparisonPlaces
        let texts = decision.decided.map { index in
            decision.numbers[index].map { String(decoding: text[places[$0]], as: UTF8.self) }
        }
        #expect(texts == one.decided)
        #expect(decision.unknown == [])
        for (comparison, number) in zip(trace.comparisons, decision.numbers) {
            #expect(comparison.isNested == (number == nil))
        }
    }

    @Test func `a part that was not evaluated still has its place`() throws {
        let condition = try RecordPredicate(format: "(k == 1 AND price < 100) OR price < 10")
        let trace = try PreparedPredicate(condition).trace(
            onValue: .map(["k": .integer(0), "price": .integer(50)]))
        let decision = ConditionDecision(of: condition, judgedAs: condition, trace)
        #expect(decision.numbers == [0, 2])
        #expect(condition.comparisonPlaces.map(\.lowerBound) == [1, 12, 28])
    }

    @Test func `an unknown part decides if nothing else does`() throws {
        let condition = try RecordPredicate(format: "NOT (a == 1 OR b == 2)")
        let judged = try RecordPredicate(format: "NOT (a == 1 OR TRUEPREDICATE)")
        let trace = try PreparedPredicate(judged).trace(onValue: .map(["a": .integer(0)]))
        let decision = ConditionDecision(of: condition, judgedAs: judged, trace)
        #expect(decision.decided == [])
        #expect(decision.unknown.map(\.canonicalText) == ["b == 2"])
    }

    @Test(arguments: [
        ("NOT (a == 1 OR b == 2)", "b is 2, but the condition asks for NOT (a == 1 OR b == 2)"),
        (
            "c == 3 AND NOT (a == 1 OR b == 2)",
            "b is 2, but the condition asks for NOT (a == 1 OR b == 2)"
        ),
    ]) func `the comparison that was true under a NOT is named`(
        condition: String, reason: String
    ) {
        let finder = MissFinder(
            of: Fixtures.change(fields: ["a": .integer(0), "b": .integer(2), "c": .integer(3)]),
            appendedAt: Fixtures.moment
        ) { predicate, fields, moment in
            try? PreparedPredicate(predicate).trace(onValue: .map(fields), now: moment)
        }
        #expect(finder.misses(of: Fixtures.subscription("s", where: condition)) == [reason])
    }

    @Test func `a fault is shown in the part that was evaluated`() throws {
        let subscription = Fixtures.subscription(
            "s", where: "(k == 1 AND p / z > 10) OR p / z > 1")
        let fault = EvaluationFault(
            of: subscription,
            on: Fixtures.change(
                fields: ["k": .integer(0), "p": .integer(1), "z": .integer(0)]),
            appendedAt: Fixtures.moment
        ) { predicate, fields, moment in
            try? PreparedPredicate(predicate).trace(onValue: .map(fields), now: moment)
        }
        #expect(
            fault?.comparison?["place"]
                == ["offset": .integer(27), "length": .integer(9)])
    }
}
