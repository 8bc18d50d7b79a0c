import Fanout
import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

/// The reasons why a change did not fire a subscription, as people read them.
@Suite struct MissFinderTests {
    private static func misses(
        of change: RecordChange, _ subscription: Subscription
    ) -> [String] {
        MissFinder(of: change, appendedAt: Fixtures.moment) { predicate, fields, moment in
            try? PreparedPredicate(predicate).trace(onValue: .map(fields), now: moment)
        }.misses(of: subscription)
    }

    /// Returns why a creation with `fields` does not fire a subscription with a condition.
    private static func misses(_ condition: String, _ fields: RecordFields) -> [String] {
        misses(
            of: Fixtures.change(fields: fields), Fixtures.subscription("s", where: condition))
    }

    @Test(arguments: [
        ("price < 100", "price is 120, but the condition asks for price < 100"),
        ("title > 3", "title is a text, but the condition asks for title > 3"),
        ("3 < title", "title is a text, but the condition asks for 3 < title"),
        ("artist == \"a-1\"", "artist is missing, but the condition asks for artist == \"a-1\""),
        (
            "NOT title BEGINSWITH \"Lil\"",
            "title is \"Lilies\", but the condition asks for NOT title BEGINSWITH \"Lil\""
        ),
        ("FALSEPREDICATE", "its condition is never true"),
    ]) func `the value, its absence or its kind is named`(
        condition: String, reason: String
    ) {
        let fields: RecordFields = ["price": .integer(120), "title": .string("Lilies")]
        #expect(Self.misses(condition, fields) == [reason])
    }

    @Test func `every failing part of an AND is named, and the nearest part of an OR`() {
        let fields: RecordFields = ["a": .integer(1), "b": .integer(2), "c": .integer(3)]
        #expect(Self.misses("a == 2 AND b == 2 AND c == 4", fields).count == 2)
        #expect(
            Self.misses("(a == 2 AND b == 3) OR c == 4", fields)
                == ["c is 3, but the condition asks for c == 4"])
        #expect(Self.misses("a == 1 AND (b == 2 OR c == 4)", fields) == [])
    }

    /// Each NOT is judged as a whole, so a part inside many NOTs would be judged as many times.
    @Test func `a part under very many NOTs is named once`() {
        let parts = (2..<1_000).map { "a == \($0)" }.joined(separator: " OR ")
        let condition = String(repeating: "NOT ", count: 180) + "(\(parts))"
        #expect(Self.misses(condition, ["a": .integer(1)]).count == 1)
    }

    @Test(arguments: [
        ("NOT (a == 1 OR b == 2)", 2),
        ("NOT (a == 1 OR b == 2 OR c == 4)", 2),
        ("NOT (a == 1 AND b == 2)", 1),
        ("NOT (a == 1 OR (b == 2 AND c == 3))", 2),
        ("NOT (NOT a == 2 OR NOT (b == 3 AND c == 4))", 3),
        ("a == 2 AND NOT (b == 2 OR c == 3)", 3),
        ("NOT (a == 2 OR b == 2)", 1),
    ]) func `every part under a NOT that would have to differ is named`(
        condition: String, count: Int
    ) {
        let fields: RecordFields = ["a": .integer(1), "b": .integer(2), "c": .integer(3)]
        let misses = Self.misses(condition, fields)
        #expect(misses.count == count, "\(misses)")
    }

    @Test(arguments: [
        ("p / z > 3", "division by zero, p is 5, z is 0, but the condition asks for p / z > 3"),
        ("z > title", "z is a number, but the condition asks for z > title"),
        (
            "p * gone > 3",
            "`*` is not defined for nil, gone is missing, p is 5, "
                + "but the condition asks for p * gone > 3"
        ),
        (
            "ANY p > 3",
            "a quantifier needs a collection, found a number, p is 5, "
                + "but the condition asks for ANY p > 3"
        ),
    ]) func `the operands of a comparison without an answer are named`(
        condition: String, reason: String
    ) {
        let fields: RecordFields = ["p": .integer(5), "z": .integer(0), "title": .string("Sea")]
        #expect(Self.misses(condition, fields) == [reason])
    }

    @Test func `a field that a partial image lacks is reported as not shown`() {
        var change = Fixtures.change(.update, fields: ["a": .integer(1)])
        change.after?.completeness = .partial
        #expect(
            Self.misses(of: change, Fixtures.subscription("s", where: "b == 2"))
                == [
                    "it does not show the fields that are compared, but the condition asks for b "
                        + "== 2"
                ])
    }

    @Test func `database, operation and readers are checked too`() {
        var change = Fixtures.change(.delete)
        let creations = Fixtures.subscription("s", firesOn: [.create, .update])
        #expect(
            Self.misses(of: change, creations)
                == ["it is a deletion, but the subscription asks for creations and updates only"])
        change.readers = ["bob"]
        #expect(
            Self.misses(of: change, Fixtures.subscription("s")) == ["alice may not read it"])
        change.readers = nil
        change.database = .private
        change.owner = Fixtures.identifier("bob")
        #expect(
            Self.misses(of: change, Fixtures.subscription("s"))
                == ["it is in the private database, but the subscription asks for the public one"])
        var own = Fixtures.subscription("s")
        own.database = .private
        #expect(Self.misses(of: change, own) == ["it is not in alice's own database"])
        own.owner = Fixtures.identifier("bob")
        #expect(Self.misses(of: change, own) == [])
    }

    @Test func `updates are compared with the former record`() {
        var change = Fixtures.change(.update, fields: ["a": .integer(1)])
        var subscription = Fixtures.subscription("s", where: "a == 1")
        subscription.firesWhen = .entered
        #expect(
            Self.misses(of: change, subscription)
                == ["it does not show whether the record matched before"])
        change.before = RecordImage(["a": .integer(1)])
        #expect(
            Self.misses(of: change, subscription)
                == ["it matched before, but the subscription asks for records that begin to match"])
        change.before = RecordImage(["a": .integer(2)])
        #expect(Self.misses(of: change, subscription) == [])
        subscription.firesWhen = .stayed
        #expect(
            Self.misses(of: change, subscription)
                == [
                    "it did not match before, but the subscription asks for records that "
                        + "matched before"
                ])
        change.before = RecordImage(["b": .integer(2)], completeness: .partial)
        #expect(
            Self.misses(of: change, subscription)
                == [
                    "it does not show whether the record matched before, but the subscription "
                        + "asks for records that matched before"
                ])
        change.before = RecordImage(["a": .integer(2)])
        subscription.firesWhen = .matches
        subscription.changedKeys = ["b"]
        #expect(
            Self.misses(of: change, subscription) == ["it does not show a new value of b"])
    }
}
