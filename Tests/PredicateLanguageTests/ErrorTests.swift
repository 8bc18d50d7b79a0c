import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// Every refusal says where the error is, what was found, and what was expected.
@Suite struct ErrorTests {
    @Test(
        arguments: [
            "", " ", "a", "a ==", "== 1", "a === 1", "a EQUALS 1", "(a == 1", "a == 1)", "()",
            "a, b",
            "a == 'x", "a == \"x\\q\"", "a == '\\u12'", "a == '\\uD800'", "a == %y", "a == %@",
            "a == %d",
            "a == %K", "a == 1x", "a == 0x", "a == 99999999999999999999", "a == 1e999", "a == 5.",
            "a ==[x] 'y'", "a BETWEEN {1}", "a BETWEEN 3", "a MATCHES '('", "a MATCHES '(?=x)y'",
            "a UTI-CONFORMS-TO 'public.image'", "FUNCTION(a, 'x') == 1", "FETCH(a) == 1",
            "random() == 1", "randomn(3) == 1", "nosuch(1) == 2", "sqrt(1, 2) == 1",
            "CAST(a, 3) == 1",
            "CAST(a, 'NSView') == 1", "SUBQUERY(a, b, c == 1).@count == 1", "$x == 1", "$ == 1",
            "a == #", "a.@ == 1", "a.@Count == 1", "a[ == 1", "a ? b : c", "a ; b", "a NOT IN {1}",
            "a IS NULL", "{1 == 2", "a IN {1,}", "AND a == 1", "a == 1 AND", "NOT", "ANY a",
            "ANY 3 == 3", "1 > 'x'", "TERNARY(a, 1, 2) == 3", "(a == 1) == (b == 2)",
            "TRUEPREDICATE 1",
        ])
    func `a format is refused with place, found and expected`(format: String) throws {
        try check(.string(format), .nspredicate)
    }

    @Test(
        arguments: [
            "", "a", "a ==", "a === 1", "a == 1 b", "a == 'x", "a == '\\q'", "a == 09",
            "a ==[d] 'x'",
            "a <[c] 'x'", "(a == 1", "a BETWEEN {1}", "a IN {b}", "a.@nosuch == 1", "a[b] == 1",
            "SUBQUERY(a, x, b == 1).@count > 0", "SUBQUERY(a, $x, b == 1)", "a == B64'!'",
            "a GEOWITHIN 3", "a GEOWITHIN geobox([1, 2])", "a GEOWITHIN geobox([1, 95], [2, 3])",
            "a == 2017-13-01@00:00:00", "a & b", "a == %@", "ANY 3 == a",
            "a == 1 SORT(b)",
            "a == 1 LIMIT(x)", "a == obj(1, 2)", "a == obj('T', 1.5)",
            "SUBQUERY(a, $x, SUBQUERY(b, $x, c == 1).@count > 0).@count > 0", "ANY a == ALL b OR",
        ])
    func `a Realm query is refused with place, found and expected`(query: String) throws {
        try check(.string(query), .rql)
    }

    @Test(
        arguments: [
            "a == 1 OR b == 2", "NOT (a == 1 AND b == 2)", "NOT a BETWEEN {1, 2}", "ALL a == 1",
            "NOT self CONTAINS 'x'", "a CONTAINS[c] 'x'", "a == b", "1 == 2", "a.b == 1",
            "a + 1 == 2",
            "a LIKE 'x'", "a == nil", "ANY a > 3", "1 CONTAINS a",
            "distanceToLocation:fromLocation:(a, b) > 3",
            "NOT distanceToLocation:fromLocation:(a, b) < 3",
        ])
    func `CloudKit's refusals say what was found and expected`(format: String) throws {
        try check(.string(format), .ckquery)
    }

    @Test(
        arguments: [
            "[]", "3", #"{"a": 1}"#, #"{"a": {}}"#, #"{"a": {"$in": [1]}}"#,
            #"{"a": {"$lt": "x"}}"#,
            #"{"$or": []}"#, #"{"$nor": [{}]}"#, #"{"a": {"$eq": null}}"#, #"{"$and": [{"b": 2}]}"#,
        ])
    func `conditions in JSON are refused with path, found and expected`(json: String) throws {
        try check(try JSONValue(parsing: json), .where)
    }

    @Test(
        arguments: [
            "3", "[3]", "[{}]", #"[{"comparator": "EQUALS"}]"#,
            #"[{"comparator": "NEARBY", "fieldName": "a", "fieldValue": {"value": 1}}]"#,
            #"[{"comparator": "EQUALS", "fieldName": "a"}]"#,
            #"[{"comparator": "IN", "fieldName": "a", "fieldValue": {"value": 1}}]"#,
            #"[{"comparator": "EQUALS", "fieldName": 3, "fieldValue": {"value": 1}}]"#,
            #"[{"comparator": "NEAR", "fieldName": "a", "fieldValue": {"value": 1}}]"#,
            #"[{"comparator": "EQUALS", "fieldName": "a", "fieldValue": {"value": 1, "type": "X"}}]"#,
        ])
    func `filters are refused with path, found and expected`(json: String) throws {
        try check(try JSONValue(parsing: json), .filterBy)
    }

    /// A schema's refusal of a JSON form has a path too, here for `n == "x"` as one of several.
    @Test(
        arguments: [
            (#"{"n": {"$eq": "x"}}"#, "n.$eq"),
            (#"{"s": {"$eq": "a"}, "zz": {"$ne": 1}}"#, "zz.$ne"),
            (
                #"{"$and": [{"s": {"$eq": "a"}}, {"$or": [{"n": {"$gt": 1, "$ne": true}}]}]}"#,
                "$and[1].$or[0].n.$ne"
            ),
            (#"{"$or": [{}, {"n": {"$gt": 1}}, {"s": {"$ne": 3}}]}"#, "$or[2].s.$ne"),
        ])
    func `a comparison in a where that does not fit the schema is named`(
        json: String, path: String
    ) throws {
        let source = try JSONValue(parsing: json)
        #expect(try refusal(of: source, .where)?.path == path)
    }

    @Test func `a filter that does not fit the schema is named`() throws {
        let filters = #"""
            [{"comparator": "EQUALS", "fieldName": "s", "fieldValue": {"value": "x"}},
             {"comparator": "LIST_CONTAINS_ALL", "fieldName": "l",
              "fieldValue": {"value": ["a", "b"]}},
             {"comparator": "NOT_EQUALS", "fieldName": "n", "fieldValue": {"value": "x"}}]
            """#
        let source = try JSONValue(parsing: filters)
        #expect(try refusal(of: source, .filterBy)?.path == "filterBy[2]")
        let alone = #"{"comparator": "EQUALS", "fieldName": "n", "fieldValue": {"value": "x"}}"#
        #expect(try refusal(of: JSONValue(parsing: alone), .filterBy)?.path == "filterBy")
        // In a text, the place is a byte offset.
        let text = try #require(try refusal(of: "s == 'a' AND n == 'x'", .nspredicate))
        #expect(text.path == nil && text.offset == 18)
    }

    private func refusal(
        of source: JSONValue, _ dialect: PredicateDialect
    ) throws -> PredicateError? {
        let schema = RecordSchema([
            "s": .init(.string), "n": .init(.integer), "l": .init(.list(.string)),
        ])
        do throws(PredicateError) {
            try RecordPredicate.parse(source, dialect: dialect).check(schema: schema)
            return nil
        } catch {
            return error.placed(in: source, dialect: dialect)
        }
    }

    private func check(_ source: JSONValue, _ dialect: PredicateDialect) throws {
        let found: PredicateError?
        do throws(PredicateError) {
            let predicate = try RecordPredicate.parse(source, dialect: dialect)
            try predicate.check()
            found = nil
        } catch {
            found = error.completed(in: source)
        }
        let error = try #require(found, "nothing is refused")
        #expect(!error.reason.isEmpty)
        #expect(error.found?.isEmpty == false, "\(error)")
        #expect(error.expected?.isEmpty == false, "\(error)")
        if case .string(let text) = source {
            #expect(error.path == nil)
            #expect(error.offset >= 0 && error.offset + error.length <= text.utf8.count)
        } else {
            #expect(error.path != nil)
        }
        let json = error.apiError.json(uuid: "u")
        #expect(json["predicateError"] != nil && json["serverErrorCode"] == "BAD_REQUEST")
    }
}
