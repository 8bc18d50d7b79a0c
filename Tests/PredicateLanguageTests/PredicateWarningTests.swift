import PredicateLanguage
import RelayModel
import Testing

/// Warnings about conditions that were probably not meant so, and none about what could be meant.
@Suite struct PredicateWarningTests {
    @Test(arguments: [
        "a == 1 AND a == 2", "a == 1 AND a == 'x'", "a == 'x' AND a == 'y'", "a > 5 AND a < 3",
        "a >= 3 AND a < 3", "a > 3 AND 3 > a", "a == 5 AND a < 3", "a < 3 AND b == 1 AND a == 3",
        "a BETWEEN {5, 3}", "a BETWEEN {1, 3} AND a > 3", "a == NULL AND a == 3", "a IN {}",
        "a == 'x' AND a IN {'y', 'z'}", "a IN {1, 2} AND a > 2", "a == 3 AND a != 3",
        "FALSEPREDICATE AND a == 1", "(a == 1 AND a == 2) OR (b < 1 AND b > 1)",
        "a.b == 1 AND a.b == 2", "FALSEPREDICATE", "NOT TRUEPREDICATE", "a > nil", "nil < a",
        "ANY a < nil", "a BETWEEN {nil, 3}", "a BEGINSWITH ''", "a ENDSWITH[c] ''", "a LIKE nil",
        "a IN ''", "a == nil AND a > 3", "a > 5 AND (b == 1 AND a < 3)",
        "createdUserRecordName == '__defaultOwner__'",
        "'__defaultOwner__' == creatorUserRecordID.recordName",
        "a == nil AND a BEGINSWITH 'x'", "a LIKE '*x' AND a == nil", "a == nil AND a MATCHES 'x'",
        "a IN {nil} AND a ENDSWITH[c] 'x'", "a <= nil AND a CONTAINS 'x'",
        "a CONTAINS 'x' AND a == 1",
        "a == 'xy' AND a BEGINSWITH[c] 'Y'", "a == 'xy' AND NOT a CONTAINS 'x'",
        "a == 'x' AND (a == 'y' OR a == 'z')", "a IN {'x', 'y'} AND a LIKE 'z*'",
        "a > 'b' AND a < 'a'", "a > 5 AND a < 'x'", "a BEGINSWITH 'x' AND a > 3", "ANY a IN {}",
        "a == true AND a == false", "a.b == nil AND a.b BEGINSWITH 'x'", "'x' IN a AND a > 3",
        "a BEGINSWITH 'ab' AND a BEGINSWITH 'cd'", "a BEGINSWITH 'ab' AND a BEGINSWITH 'ac'",
        "a ENDSWITH 'ab' AND a ENDSWITH 'b' AND a ENDSWITH 'cb'",
        "a BEGINSWITH 'ab' AND a < 'aa'", "a > 5 AND NOT a > 4", "a >= 5 AND a <= 5 AND a != 5",
        "a < CAST(5, 'NSDate') AND NOT a < CAST(9, 'NSDate')", "a >= 'x' AND a <= 'x' AND a != 'x'",
        "a > 1 AND NOT (a > 0 OR b == 1)", "NOT (a == 'x' OR NOT a == 'x')",
        "a CONTAINS 'x' AND NOT a CONTAINS 'x'", "ANY a > 3 AND b == 1 AND NOT ANY a > 3",
        "a < a", "a > a", "1 == 2", "3 BETWEEN {1, 2}", "NOT NOT (a == 1 AND a == 2)",
        "a >= 5 AND NOT a != 5 AND NOT a >= 5", "a.@count < 0", "0 > a.@count", "a[SIZE] == -1",
        "length(a) <= -1", "SUBQUERY(a, $x, $x > 1).@count < 0",
        "distanceToLocation:fromLocation:(a, CAST({1.0, 2.0}, 'CLLocation')) < 0",
        "length(a) == '5'", "a.@count > '3'", "'3' < a[SIZE]", "uppercase(a) == 5", "-a < 'x'",
        "CAST(a, 'NSDate') == '2024-01-01'", "CAST(a, 'NSNumber') LIKE '*'", "a + 1 IN {'x', 'y'}",
        "a.@count BETWEEN {'a', 'b'}", "ANY a.@count > 1", "ANY uppercase(a) == 'X'",
        "a BEGINSWITH length(a)", "abs(a) CONTAINS 'x'", "SUBQUERY(a, $x, $x > 1).@count == 'x'",
        "a == 1 AND CAST(b, 'NSUUID') == 'x'", "a[0] BETWEEN {2, 1}", "ANY a BETWEEN {2, 1}",
        "a BETWEEN[c] {2, 1}", "length(a) BETWEEN {9, 3}", "a.@count BETWEEN {1, 0}",
        "a.@count > 5 AND a.@count < 3", "a[0] > 5 AND a[0] < 3",
        "a[LAST] IN {1, 2} AND a[LAST] > 2", "a.@count == 1.5", "a[SIZE] > 1 AND a[SIZE] < 2",
        "a['k'] == 1 AND a['k'] == 2", "SELF == 'x'", "'x' == SELF", "SELF IN {'x', 'y'}",
        "SELF == nil", "SELF LIKE '*'", "SELF CONTAINS 'of the'", "SELF CONTAINS ''",
        "lowercase(a) == 'Bob'", "'Bob' == lowercase(a)", "uppercase(a) BEGINSWITH 'x'",
        "a[-1] == 'x'", "'x' == a[-1]", "a.b[-2].c > 3", "a[-1] IN {1, 2}", "a / 0 == 1",
        "1 == a / 0", "a / 0.0 BETWEEN {1, 2}", "a / 0 IN {1, 2}",
        "a TOKENMATCHES {'of', 'the'}", "a TOKENMATCHES 'the'",
        "uppercase(a) IN {'x', 'yY'}", "lowercase(a) LIKE 'B*'", "lowercase(a) CONTAINS 'B'",
        "recordName == ''", "nil == recordName", "recordID == nil AND a == 1",
        "recordName IN {'', nil}",
    ])
    func `a condition that no record can satisfy is warned about`(format: String) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(predicate.ownWarnings.map(\.kind) == [.neverTrue])
    }

    @Test(arguments: [
        "a == 1 OR a == 2", "a == 1 AND b == 2", "a > 3 AND a < 5", "a >= 3 AND a <= 3",
        "ANY a == 1 AND ANY a == 2", "a ==[c] 'x' AND a ==[c] 'y'", "a != 1 AND a != 2",
        "NOT (a == 1 AND a == 2)", "a == 1 AND a == 1.0", "a IN {1, 2} AND a > 1",
        "a == b AND a == c", "a BETWEEN {3, 3}", "a == NULL", "a == NULL AND a != 3",
        "a IN {1, 'x'} AND a == 'x'", "a > 'a' AND a < 'b'", "TRUEPREDICATE", "a >= nil",
        "a == 9223372036854775807 AND a == 9223372036854775806", "a[0] == 1 AND a[1] == 2",
        "SELF CONTAINS 'x'", "SELF TOKENMATCHES 'x'", "SELF != 'x'", "SELF.a == 'x'", "SELF == a",
        "lowercase(a) ==[c] 'Bob'", "lowercase(a) == 'bob \u{C9}'", "lowercase(a) != 'Bob'",
        "a[-1] == nil", "a[-1] != 'x'", "a[0] == 'x'", "a['k'] == 'x'", "a / 0 > 1", "a / 0 != 1",
        "a / 2 == 1", "a / b == 1", "0 / a == 1", "NOT (a / 0 == 1)",
        "a TOKENMATCHES {'of', 'tea'}", "NOT a TOKENMATCHES {'of'}",
        "recordName != ''", "recordName != nil", "recordName IN {'', 'x'}", "a.recordName == nil",
        "creationDate == nil", "createdUserRecordName == nil",
        "uppercase(a) IN {'x', 'Y'}", "uppercase(a) IN 'aX'", "SELF CONTAINS 'the x'",
        "ANY SELF CONTAINS 'the'", "NONE SELF CONTAINS 'the'", "ANY SELF == 'x'",
        "SELF == CAST({'k', 'x'}, 'NSDictionary')",
        "a CONTAINS ''", "'' IN a", "ALL a > nil", "NONE a BEGINSWITH ''", "a LIKE ''", "n == 1.5",
        "NOT (createdUserRecordName == '__defaultOwner__')", "a == '__defaultOwner__'",
        "a == -9223372036854775808", "a[FIRST] == 1 AND a[LAST] == 2",
        "a == nil AND NOT a BEGINSWITH 'x'", "a == 'xy' AND a BEGINSWITH[c] 'X'", "ALL a IN {}",
        "NONE a IN {}", "a == 1 AND a == true", "a CONTAINS 'x' AND 'y' IN a", "a == nil OR a == 3",
        "a BEGINSWITH 'x' AND a ENDSWITH 'y'", "a == 'K' AND a != 'k'", "a == nil AND a <= nil",
        "a == nil AND b BEGINSWITH 'x'", "a == 'x' AND (a == 'x' OR b == 'y')",
        "a BEGINSWITH 'ab' AND a BEGINSWITH 'abc'", "a ENDSWITH 'b' AND a ENDSWITH 'ab'",
        "a BEGINSWITH[c] 'ab' AND a BEGINSWITH[c] 'CD'", "a BEGINSWITH 'ab' AND a > 'aa'",
        "NOT a > 4 AND NOT a < 5", "a > 5 AND NOT a > 6", "a >= 5 AND a <= 6 AND a != 5",
        "NOT (a > 3 AND NOT a > 3)", "a != a", "NOT (a != a)", "a == a", "a <= a", "NOT a < a",
        "ANY a < a", "1 == 1", "NOT (a == 1 OR b == 1)", "NOT (a < 3 OR a > 3)",
        "a != 5 AND a <= 5",
        "a CONTAINS 'x' AND NOT a CONTAINS 'y'", "a >= 5 AND NOT a > 5",
        "a BEGINSWITH 'é' AND a BEGINSWITH 'e'", "ANY a BEGINSWITH 'x' AND ANY a BEGINSWITH 'y'",
        "a.@count <= 0", "a.@count == 0", "NOT a.@count < 0", "a.@sum.b < 0", "length(a) < 1",
        "distanceToLocation:fromLocation:(a, CAST({1.0, 2.0}, 'CLLocation')) <= 0", "abs(a) < 0",
        "length(a) == 5", "a.@count == true", "uppercase(a) == 'X'", "length(a) == nil",
        "-a IN {1, 'x'}", "a.@count != '3'", "NOT a.@count == '3'", "ALL a.@count > 1",
        "uppercase(a) LIKE '*'", "a.@max == 'x'", "max(a) == 'x'", "noindex(a) == 'x'",
        "CAST(a, 'NSNumber') > 5", "a UNION {1} == 'x'", "'a' IN uppercase(b)",
        "a.@count > 1 AND a.@count < 3", "a[0] > 5 AND a[1] < 3", "a.@max.b > 5 AND a.@max.b < 3",
        "a.@count == 1.0", "a['k'] == 1 AND a['l'] == 2", "ANY a[0] == 1 AND ANY a[0] == 2",
        "ALL a BETWEEN {2, 1}", "NOT a BETWEEN {2, 1}", "a BETWEEN[c] {'b', 'A'}",
    ])
    func `a condition that may be meant is not warned about`(format: String) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(predicate.ownWarnings == [])
    }

    @Test(arguments: [
        (PredicateForm.predicate, "join alternatives with OR"),
        (.rql, "join alternatives with OR"), (.where, "join alternatives with $or"),
        (
            .filterBy,
            "all filters must match: for alternatives, use one filter with IN, or a "
                + "subscription for each"
        ),
    ])
    func `the hint about alternatives fits the form`(
        form: PredicateForm, hint: String
    ) throws {
        let predicate = try RecordPredicate(format: "a == 1 AND a == 2")
        #expect(predicate.ownWarnings(by: nil, in: form).map(\.hint) == [hint])
    }

    @Test(arguments: [
        (1_767_225_600, true), (1_767_225_600_000, false), (0, false), (-1_000, false),
    ])
    func `a date in the wrong unit is warned about`(milliseconds: Int64, isTold: Bool) throws {
        let filters: JSONValue = [
            [
                "fieldName": "due", "comparator": "GREATER_THAN",
                "fieldValue": ["value": .integer(milliseconds), "type": "TIMESTAMP"],
            ]
        ]
        let predicate = try RecordPredicate(filterBy: filters)
        #expect(predicate.ownWarnings.map(\.kind) == (isTold ? [.unlikelyDate] : []))
        // Milliseconds where seconds are meant, here in a list.
        let date = FieldValue.timestamp(Timestamp(seconds: milliseconds))
        let list = RecordPredicate(
            .comparison(.init(.field("due"), .in, .constant(.list([.null, date])))))
        let isLate = milliseconds == 1_767_225_600_000
        #expect(list.ownWarnings.map(\.kind) == (isLate ? [.unlikelyDate] : []))
    }

    @Test(arguments: ["4001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
    func `a far date that stands for no end is not warned about`(text: String) throws {
        let date = FieldValue.timestamp(try #require(Timestamp(iso8601: text)))
        let predicate = RecordPredicate(
            .comparison(.init(.field("due"), .less, .constant(date))))
        #expect(predicate.ownWarnings == [])
    }

    private let schema = RecordSchema([
        "n": .init(.integer), "d": .init(.double), "s": .init(.string), "t": .init(.timestamp),
        "l": .init(.list(.integer)), "m": .init(.mixed), "r": .init(.reference),
    ])

    @Test(arguments: [
        "n == 1.5", "n > 1 AND n < 2", "n BETWEEN {1.2, 1.8}", "n IN {1.5, 2.5}",
        "s CONTAINS ''", "'' IN s", "s CONTAINS nil",
        "createdUserRecordName CONTAINS ''", "s != s", "NOT (n == n)", "n > 5 AND n < 7 AND n != 6",
        "n > 5 AND NOT n > 5.5", "n / 0 > 1", "n / 0 != 1", "NOT (n / 0 == 1)",
    ])
    func `a condition that no record of the schema can satisfy is warned about`(
        format: String
    ) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(predicate.ownWarnings(by: schema).map(\.kind) == [.neverTrue])
        let told = predicate.ownWarnings(by: schema).first?.reason
        let isOfAll = format.hasPrefix("created")
        #expect(told?.hasPrefix("no record that follows the schema") == !isOfAll)
    }

    @Test(arguments: [
        "n == 1.0", "n >= 1 AND n < 2", "d == 1.5", "d > 1 AND d < 2", "n != 1.5", "m == 1.5",
        "m CONTAINS ''", "l CONTAINS ''", "n IN {1.5, 2}", "n BETWEEN {1.2, 2.8}", "n == nil",
        "d / 0 > 1", "m / 0 != 1", "n / 0.0 > 1",
        "d != d", "m != m", "l != l", "NOT (s != s)", "n > 5 AND n < 8 AND n != 6",
    ])
    func `a condition that a record of the schema may satisfy is not warned about`(
        format: String
    ) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(predicate.ownWarnings(by: schema) == [])
    }

    @Test(arguments: [
        ("n > 5 && n < 3", true), ("n > 5 and d == 1 and n < 3", true), ("n == 1.5", true),
        ("n > nil", true), ("FALSEPREDICATE", true), ("s == 'x' && s == 'y'", true),
        ("n IN {1, 2} && n > 2", true), ("n == nil && n > 3", true), ("n > 5 || n < 3", false),
        ("l > 5 && l < 3", false), ("m > 5 && m < 3", false), ("r == 1 && r == 2", false),
        ("n == ANY {1, 2} && n == ANY {2, 3}", false), ("n >= nil", false),
        ("s CONTAINS ''", false), ("n != nil && n > 3", false), ("s IN {}", true),
        ("s == nil && s BEGINSWITH 'x'", true), ("s == 'x' && s LIKE 'y*'", true),
        ("s == 'x' && s BEGINSWITH[c] 'X'", false), ("l == 1 && l BEGINSWITH 'x'", false),
        ("s == 'x' && (s == 'y' || s == 'z')", true), ("NONE l IN {}", false),
        ("n BETWEEN {5, 3}", true), ("m BETWEEN {5, 'x'}", true), ("m BETWEEN {3, 5}", false),
        ("ALL l BETWEEN {5, 3}", false), ("NOT m BETWEEN {5, 3}", false),
        ("l.@count > 'x'", true), ("l.@size IN {'x'}", true), ("l.@count == true", false),
        ("NONE l.@count > 'x'", false), ("l.@count == nil", false), ("l.@count > 1", false),
        ("d == nan", true), ("d != nan", false), ("d BETWEEN {nan, 1}", true),
        ("m > NaN", true), ("d IN {nan, 1}", false),
    ])
    func `RQL is judged by its own rules`(text: String, isNever: Bool) throws {
        let warnings = try RecordPredicate(rql: text).ownWarnings(by: schema)
        #expect(warnings.map(\.kind) == (isNever ? [.neverTrue] : []))
    }

    @Test(arguments: [
        (#"{"n": {"$gt": 5, "$lt": 3}}"#, true), (#"{"n": {"$eq": 1.5}}"#, true),
        (#"{"$and": [{"n": {"$gt": 5}}, {"n": {"$lt": 3}}]}"#, true),
        (#"{"s": {"$eq": "x"}, "$and": [{"s": {"$eq": "y"}}]}"#, true),
        (#"{"n": {"$gt": 3, "$lt": 5}}"#, false), (#"{"l": {"$gt": 5, "$lt": 3}}"#, false),
        (#"{"$or": [{"n": {"$gt": 5}}, {"n": {"$lt": 3}}]}"#, false),
        (#"{"s": {"$eq": "x"}, "$or": [{"s": {"$eq": "y"}}, {"s": {"$eq": "z"}}]}"#, true),
        (#"{"s": {"$eq": "x", "$ne": "y"}}"#, false), (#"{"s": {"$eq": "x", "$ne": "x"}}"#, true),
        (#"{"n": {"$ne": 1.5}}"#, false), (#"{"m": {"$eq": 1, "$ne": 2}}"#, false),
    ])
    func `Minapp's conditions are judged by their own rules`(
        text: String, isNever: Bool
    ) throws {
        let predicate = try RecordPredicate(where: JSONValue(parsing: text))
        #expect(predicate.ownWarnings(by: schema).map(\.kind) == (isNever ? [.neverTrue] : []))
        // Without a schema, a field may be a list.
        #expect(predicate.ownWarnings == [])
    }

    @Test(arguments: [
        (
            "s BEGINSWITH ''",
            "CONTAINS, BEGINSWITH and ENDSWITH are always false with an empty text"
        ),
        ("FALSEPREDICATE", nil), ("s > nil", nil),
        ("a == 1 AND a == 2", "join alternatives with OR"),
        (
            "SELF == 'x'",
            "SELF is the whole record: to compare its name, write recordName or recordID"
        ),
        (
            "length(a) == '5'",
            "the result of a calculated side never has the type that the comparison needs"
        ),
        ("a IN {}", "the list is empty, so no value is in it"),
        ("recordName == nil", "every record has a name, which is never nil or empty"),
        ("a IN {} AND b == 1", "the list is empty, so no value is in it"),
        (
            "createdUserRecordName == '__defaultOwner__'",
            "__defaultOwner__ means the current user only in CloudKit's own classes: "
                + "write the user's record name instead"
        ),
    ])
    func `a surprising condition is warned about with a hint`(format: String, hint: String?) throws
    {
        let warnings = try RecordPredicate(format: format).ownWarnings
        #expect(warnings.map(\.hint) == [hint])
    }

    @Test func `the part that no record can satisfy is named`() throws {
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
    func `wildcards of SQL are warned about`(format: String, hint: String?) throws {
        let warnings = try RecordPredicate(format: format).ownWarnings
        #expect(warnings.map(\.kind) == (hint == nil ? [] : [.foreignWildcard]))
        #expect(warnings.first?.hint == hint)
        #expect(warnings.first.map { $0.span.offset > 0 && $0.span.length > 0 } ?? true)
    }

    @Test(arguments: [
        (#""priority" > "2""#, "write a field name without quotes: priority"),
        (#"a == 1 AND "b" == 3"#, "write a field name without quotes: b"),
        (#"3 == "b""#, nil), (#""a b" == 3"#, nil), (#""a" IN tags"#, nil), ("1 == 1", nil),
    ])
    func `a field name in quotes is warned about`(format: String, hint: String?) throws {
        let warnings = try RecordPredicate(format: format).ownWarnings
        #expect(warnings.map(\.kind) == (hint == nil ? [] : [.unknownField]))
        #expect(warnings.first?.hint == hint)
    }

    @Test func `the wire form has an offset where there is one`() throws {
        let predicate = try RecordPredicate(format: "a LIKE 'x%'")
        #expect(
            predicate.ownWarnings.map { JSONValue.object($0.json).text } == [
                #"{"warning":"foreignWildcard","reason":"% is an ordinary character in a "#
                    + #"pattern of LIKE; the wildcards are * and ?","#
                    + #""hint":"did you mean LIKE \"x*\"?","#
                    + #""offset":7,"length":4}"#
            ])
    }
}
