import RelayModel
import Testing

@testable import PredicateLanguage

@Suite struct FilterByTests {
    private static let list: JSONValue = ["value": ["a", "b"], "type": "STRING_LIST"]
    private static let text: JSONValue = ["value": "ab", "type": "STRING"]

    @Test(
        arguments: [
            ("EQUALS", text, "f == \"ab\""), ("NOT_EQUALS", text, "f != \"ab\""),
            ("LESS_THAN", ["value": 5, "type": "INT64"], "f < 5"),
            ("LESS_THAN_OR_EQUALS", ["value": 5, "type": "DOUBLE"], "f <= 5.0"),
            (
                "GREATER_THAN", ["value": 1500, "type": "TIMESTAMP"],
                "f > CAST(-978307198.500000, \"NSDate\")"
            ),
            ("GREATER_THAN_OR_EQUALS", ["value": 5], "f >= 5"),
            ("IN", list, "f IN {\"a\", \"b\"}"), ("NOT_IN", list, "NOT f IN {\"a\", \"b\"}"),
            ("BEGINS_WITH", text, "f BEGINSWITH \"ab\""),
            ("NOT_BEGINS_WITH", text, "NOT f BEGINSWITH \"ab\""),
            (
                "CONTAINS_ANY_TOKENS", ["value": "The Big cat"],
                "f TOKENMATCHES[cdl] \"The Big cat\""
            ),
            (
                "CONTAINS_ALL_TOKENS", ["value": "The Big cat"],
                "f TOKENMATCHES[cdl] \"big\" AND f TOKENMATCHES[cdl] \"cat\""
            ),
            ("LIST_CONTAINS", text, "f CONTAINS \"ab\""),
            ("NOT_LIST_CONTAINS", text, "NOT f CONTAINS \"ab\""),
            ("LIST_CONTAINS_ANY", list, "ANY f IN {\"a\", \"b\"}"),
            ("NOT_LIST_CONTAINS_ANY", list, "NOT ANY f IN {\"a\", \"b\"}"),
            ("LIST_CONTAINS_ALL", list, "f CONTAINS \"a\" AND f CONTAINS \"b\""),
            ("NOT_LIST_CONTAINS_ALL", list, "NOT (f CONTAINS \"a\" AND f CONTAINS \"b\")"),
            ("LIST_MEMBER_BEGINS_WITH", text, "ANY f BEGINSWITH \"ab\""),
            ("NOT_LIST_MEMBER_BEGINS_WITH", text, "NOT ANY f BEGINSWITH \"ab\""),
        ] as [(String, JSONValue, String)])
    func `each comparator has its meaning`(
        comparator: String, value: JSONValue, canonical: String
    ) throws {
        let filter: JSONValue = [
            "comparator": .string(comparator), "fieldName": "f", "fieldValue": value,
        ]
        for source in [filter, [filter]] {
            let predicate = try RecordPredicate(filterBy: source)
            #expect(predicate.canonicalText == canonical)
            #expect(try RecordPredicate(format: canonical) == predicate)
        }
    }

    @Test func `NEAR is a circle in metres`() throws {
        let predicate = try RecordPredicate(filterBy: [
            "comparator": "NEAR", "fieldName": "spot", "distance": 1000,
            "fieldValue": [
                "value": ["latitude": .number(48.5), "longitude": 2], "type": "LOCATION",
            ],
        ])
        #expect(
            predicate.canonicalText
                == "distanceToLocation:fromLocation:(spot, CAST({48.5, 2.0}, \"CLLocation\")) < 1000.0"
        )
        #expect(try RecordPredicate(format: predicate.canonicalText) == predicate)
    }

    @Test func `filters are joined by AND, and no filter means every record`() throws {
        let predicate = try RecordPredicate(filterBy: [
            ["comparator": "EQUALS", "fieldName": "a", "fieldValue": ["value": true]],
            [
                "comparator": "EQUALS", "systemFieldName": "recordName",
                "fieldValue": ["value": ["recordName": "r1"], "type": "REFERENCE"],
            ],
        ])
        #expect(
            predicate.canonicalText == "a == 1 AND recordName == CAST(\"r1\", \"CKReference\")")
        #expect(try RecordPredicate(filterBy: []) == .everyRecord)
        #expect(try RecordPredicate(filterBy: .null) == .everyRecord)
    }

    @Test(
        arguments: [
            (["fieldName": "f", "fieldValue": text], "filterBy[0].comparator", "is required"),
            (
                ["comparator": "equals", "fieldName": "f", "fieldValue": text],
                "filterBy[0].comparator",
                "\"equals\" is unknown; allowed are \"EQUALS\""
            ),
            (["comparator": "EQUALS", "fieldValue": text], "filterBy[0].fieldName", "is required"),
            (["comparator": "EQUALS", "fieldName": "f"], "filterBy[0].fieldValue", "is required"),
            (
                [
                    "comparator": "EQUALS", "fieldName": "f",
                    "fieldValue": ["value": .number(1.5), "type": "TIMESTAMP"],
                ],
                "filterBy[0].fieldValue.value", "Invalid value, expected type TIMESTAMP."
            ),
            (
                ["comparator": "IN", "fieldName": "f", "fieldValue": text],
                "filterBy[0].fieldValue.value", "IN takes a list"
            ),
            (
                ["comparator": "EQUALS", "fieldName": "f", "fieldValue": list],
                "filterBy[0].fieldValue.value", "EQUALS takes a single value"
            ),
            (
                [
                    "comparator": "IN", "fieldName": "f",
                    "fieldValue": ["value": [1, "x"], "type": "INT64_LIST"],
                ],
                "filterBy[0].fieldValue.value[1]", "Invalid value, expected type INT64."
            ),
            (
                [
                    "comparator": "EQUALS", "fieldName": "f",
                    "fieldValue": ["value": 1, "type": "NUMBER"],
                ],
                "filterBy[0].fieldValue.type", "\"NUMBER\" is unknown; allowed are STRING"
            ),
            (
                [
                    "comparator": "NEAR", "fieldName": "f",
                    "fieldValue": ["value": ["latitude": 1, "longitude": 1]],
                ],
                "filterBy[0].distance", "NEAR needs a distance"
            ),
            (
                ["comparator": "EQUALS", "fieldName": "f", "fieldValue": text, "x": 1],
                "filterBy[0].x",
                "unknown field"
            ),
        ] as [(JSONValue, String, String)])
    func `a filter of the wrong shape is refused with its path`(
        filter: JSONValue, path: String, reason: String
    ) {
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(filterBy: [filter])
        }
        #expect(error?.path == path)
        #expect(error?.reason.hasPrefix(reason) == true, "\(error?.reason ?? "")")
    }

    // Without the early check, one filter made half a million comparisons before its length was
    // refused.
    @Test func `a filter with too many words or values is refused before it is expanded`() throws {
        let words: JSONValue = ["value": .string(String(repeating: "cat ", count: 20_000))]
        let values: JSONValue = [
            "value": .array(Array(repeating: 1, count: 10_000)), "type": "INT64_LIST",
        ]
        func filters(_ comparator: String, _ value: JSONValue, _ count: Int) -> JSONValue {
            let filter: JSONValue = [
                "comparator": .string(comparator), "fieldName": "f", "fieldValue": value,
            ]
            return .array(Array(repeating: filter, count: count))
        }
        for (source, place) in [
            (filters("CONTAINS_ALL_TOKENS", words, 1), 0),
            (filters("LIST_CONTAINS_ALL", values, 2), 1),
            (filters("NOT_LIST_CONTAINS_ALL", values, 2), 1),
        ] {
            let error = #expect(throws: PredicateError.self) {
                try RecordPredicate(filterBy: source)
            }
            #expect(error?.path == "filterBy[\(place)].fieldValue.value")
        }
        #expect(throws: Never.self) {
            try RecordPredicate(filterBy: filters("LIST_CONTAINS_ALL", values, 1))
        }
        #expect(throws: Never.self) {
            try RecordPredicate(filterBy: filters("CONTAINS_ANY_TOKENS", words, 1))
        }
    }
}

@Suite struct CloudKitSubsetTests {
    @Test(.enabled(if: Corpora.folder != nil, Corpora.skipped))
    func `the documented rules of CKQuery hold`() throws {
        for line in try Corpora.lines("ckquery_subset_cases.jsonl") {
            let isValid =
                (try? RecordPredicate.parse(
                    .string(line.text("predicate")), dialect: .ckquery,
                    arguments: line.arguments())) != nil
            #expect(line["ck_valid"] == .bool(isValid), "\(line.text("predicate"))")
        }
    }

    @Test(arguments: ["name CONTAINS 'x'", "tags == 'y' AND NOT 'x' IN name"])
    func `CONTAINS asks for an element of a list or a part of a text, as the schema says`(
        format: String
    ) throws {
        let schema = RecordSchema([
            "name": RecordSchema.Field(.string), "tags": RecordSchema.Field(.list(.string)),
        ])
        let source = JSONValue.string(format)
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate.parse(source, dialect: .ckquery, schema: schema)
        }
        #expect(error?.reason.hasSuffix("in a text is not supported") == true)
        #expect(throws: Never.self) { try RecordPredicate.parse(source, dialect: .ckquery) }
        let list = JSONValue.string(format.replacing("name", with: "tags"))
        #expect(throws: Never.self) {
            try RecordPredicate.parse(list, dialect: .ckquery, schema: schema)
        }
    }

    @Test(arguments: [
        "{'red', 'green'} CONTAINS colour", "ALL {'red', 'green'} IN tags",
        "ANY {'red', 'green'} IN tags", "ALL tokenize:using:('after bob', 'Cdl') IN allTokens",
        "distanceToLocation:fromLocation:(CAST({1.0, 2.0}, 'CLLocation'), spot) < 5",
        "5 >= distanceToLocation:fromLocation:(spot, CAST({1.0, 2.0}, 'CLLocation'))",
    ])
    func `a condition that CloudKit accepts is accepted`(format: String) throws {
        let predicate = try RecordPredicate(format: format)
        #expect(throws: Never.self) { try predicate.checkCloudKit() }
    }

    @Test(arguments: [
        (
            "5 < distanceToLocation:fromLocation:(spot, CAST({1.0, 2.0}, 'CLLocation'))", 0,
            "CloudKit: only places inside"
        ),
        ("'red' CONTAINS colour", 0, "CloudKit: CONTAINS needs the list"),
        ("ALL tags == 'x'", 0, "CloudKit: ALL is not supported"),
        ("a == 1 OR b == 2", 0, "CloudKit: OR is not supported"),
        ("a == 1 AND NOT (b == 2 AND c == 3)", 16, "CloudKit: NOT before AND or OR"),
        ("NONE tags == 'x'", 0, "CloudKit: NONE is not supported"),
        ("ANY tags > 3", 0, "CloudKit: ANY with > is not supported"),
        ("name ==[c] 'x'", 0, "CloudKit: text options are not supported"),
        ("a.b == 1", 0, "CloudKit: key paths"), ("a == b", 0, "CloudKit: two fields"),
        ("1 == 1", 0, "CloudKit: a comparison needs a field"),
        ("a + 1 == 2", 0, "CloudKit: only fields, values"), ("a == nil", 5, "CloudKit: nil"),
        ("length(a) == 1", 0, "CloudKit: only fields"), ("姓名 == 1", 0, "CloudKit: `姓名`"),
        ("TERNARY(a == 1, 1, 2) == 1", 0, "CloudKit: only fields"),
    ])
    func `a condition that CloudKit refuses is refused with the reason`(
        format: String, offset: Int, reason: String
    ) throws {
        let predicate = try RecordPredicate(format: format)
        let error = #expect(throws: PredicateError.self) { try predicate.checkCloudKit() }
        #expect(error?.stage == .check)
        #expect(error?.offset == offset)
        #expect(error?.reason.hasPrefix(reason) == true, "\(error?.reason ?? "")")
    }
}
