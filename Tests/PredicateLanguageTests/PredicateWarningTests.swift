import PredicateLanguage
import RelayModel
import Testing

/// What a condition says of itself that was probably not meant; nothing that could be meant.
@Suite struct PredicateWarningTests {
    @Test(arguments: [
        "a == 1 AND a == 2", "a == 1 AND a == 'x'", "a == 'x' AND a == 'y'", "a > 5 AND a < 3",
        "a >= 3 AND a < 3", "a > 3 AND 3 > a", "a == 5 AND a < 3", "a < 3 AND b == 1 AND a == 3",
        "a BETWEEN {5, 3}", "a BETWEEN {1, 3} AND a > 3", "a == NULL AND a == 3", "a IN {}",
        "a == 'x' AND a IN {'y', 'z'}", "a IN {1, 2} AND a > 2", "a == 3 AND a != 3",
        "FALSEPREDICATE AND a == 1", "(a == 1 AND a == 2) OR (b < 1 AND b > 1)",
        "a.b == 1 AND a.b == 2",
    ])
    func `what no record can satisfy is told`(format: String) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(predicate.ownWarnings.map(\.kind) == [.neverTrue])
    }

    @Test(arguments: [
        "a == 1 OR a == 2", "a == 1 AND b == 2", "a > 3 AND a < 5", "a >= 3 AND a <= 3",
        "ANY a == 1 AND ANY a == 2", "a ==[c] 'x' AND a ==[c] 'y'", "a != 1 AND a != 2",
        "NOT (a == 1 AND a == 2)", "a == 1 AND a == 1.0", "a IN {1, 2} AND a > 1",
        "a == b AND a == c", "a BETWEEN {3, 3}", "a == NULL", "a == NULL AND a != 3",
        "a IN {1, 'x'} AND a == 'x'", "a > 'b' AND a < 'a'", "TRUEPREDICATE", "FALSEPREDICATE",
        "a == 9223372036854775807 AND a == 9223372036854775806", "a[0] == 1 AND a[1] == 2",
        "a == -9223372036854775808", "a[FIRST] == 1 AND a[LAST] == 2", "a CONTAINS 'x' AND a == 1",
    ])
    func `what might be meant is left alone`(format: String) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(predicate.ownWarnings == [])
    }

    @Test func `a part that no record can satisfy is named`() throws {
        let predicate = try RecordPredicate(format: "a == 1 OR (b == 1 AND b == 2)")
        #expect(
            predicate.ownWarnings.map(\.reason)
                == [
                    "no record can satisfy this part of the condition: b == 1 AND b == 2"
                ])
    }

    @Test(arguments: [
        ("a LIKE '%x%'", #"did you mean LIKE "*x*"?"#),
        ("a LIKE[c] 'x%'", #"did you mean LIKE "x*"?"#),
        ("a LIKE 'x*%'", nil), ("a LIKE 'x?'", nil), ("a LIKE 'x'", nil), ("a == '%'", nil),
    ])
    func `wildcards of SQL are told`(format: String, hint: String?) throws {
        let warnings = try RecordPredicate(format: format).ownWarnings
        #expect(warnings.map(\.kind) == (hint == nil ? [] : [.foreignWildcard]))
        #expect(warnings.first?.hint == hint)
        #expect(warnings.first.map { $0.span.offset > 0 && $0.span.length > 0 } ?? true)
    }

    @Test func `the wire form has a place where there is one`() throws {
        let predicate = try RecordPredicate(format: "a LIKE 'x%'")
        #expect(
            predicate.ownWarnings.map { JSONValue.object($0.json).text } == [
                #"{"warning":"foreignWildcard","reason":"% is a sign like any other in a pattern of "#
                    + #"LIKE; * and ? stand for others","hint":"did you mean LIKE \"x*\"?","#
                    + #""offset":7,"length":4}"#
            ])
    }
}
