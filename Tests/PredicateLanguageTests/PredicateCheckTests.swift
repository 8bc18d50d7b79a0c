import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

@Suite struct PredicateCheckTests {
    private static let schema = RecordSchema([
        "name": .init(.string), "age": .init(.integer), "price": .init(.double),
        "active": .init(.boolean), "due": .init(.timestamp), "tags": .init(.list(.string)),
        "artist": .init(.reference), "spot": .init(.location),
        "secret": .init(.string, isQueryable: false),
        "addr": .init(.map(["city": .init(.string)])), "mixed": .init(.mixed),
        "kids": .init(.list(.map(["age": .init(.integer)]))), "blob": .init(.bytes),
        "ident": .init(.uuid),
    ])

    @Test(arguments: [
        ("a BETWEEN 25", 10, "BETWEEN needs a list of two bounds"),
        ("a == 1 AND a BETWEEN {1}", 21, "BETWEEN needs a list of two bounds"),
        ("a BETWEEN {1, 2, 3}", 10, "BETWEEN needs a list of two bounds"),
        ("a BETWEEN {1, 'x'}", 10, "the bounds of BETWEEN are of different kinds"),
        ("a MATCHES '('", 10, "the pattern is refused"),
        ("ANY 5 == a", 4, "ANY needs a collection"), ("a == $x", 5, "the variable $x has no value"),
        ("a.$x == 1", 0, "the variable $x has no value"),
        ("SUBQUERY(a, $y, $x == 1).@count > 0", 16, "the variable $x has no value"),
        ("a IN 5", 5, "IN needs a list"), ("a BEGINSWITH 5", 13, "BEGINSWITH compares texts"),
        ("5 LIKE a", 0, "LIKE compares texts"), ("a < {1}", 4, "a list has no order"),
        ("'2' < 2", 0, "a text cannot be ordered against a number"),
        ("a + nil == 1", 0, "`+` calculates with numbers"),
        ("a > now() - 3600", 4, "`-` calculates with numbers, and now() is a date"),
        ("1 + 'x' == a", 0, "`+` calculates with numbers"),
    ])
    func `a constant that can never be used is refused at save`(
        format: String, offset: Int, reason: String
    ) throws {
        try check(format, nil, offset, reason)
    }

    @Test(
        arguments: [
            ("a BETWEEN b", nil), ("a BETWEEN {b, 3}", nil), ("a IN b", nil), ("a > nil", nil),
            ("SUBQUERY(a, $x, $x > 1).@count > 0", nil), ("($x := 1) == 1 AND $x == a", nil),
            ("name == 'x' AND age > 3.5 AND active == YES", schema), ("tags CONTAINS 'x'", schema),
            ("'x' IN tags AND ANY tags BEGINSWITH 'x'", schema), ("ANY kids.age > 3", schema),
            ("kids.@max.age > 3 AND tags.@count == 2", schema), ("addr.city LIKE 'P*'", schema),
            ("mixed > 3 AND mixed CONTAINS 'x'", schema), ("due > now()", schema),
            ("creationDate > CAST(0, 'NSDate')", schema), ("name IN {'a', nil}", schema),
            ("age BETWEEN {1, 2}", schema), ("name IN 'abc'", schema), ("artist != nil", schema),
            ("kids.@sum.age > 3 AND kids.age.@avg < 9 AND kids.@count > 0", schema),
            ("kids.@distinctUnionOfObjects.age CONTAINS 3", schema), ("max(tags) > 'a'", schema),
            ("name.uppercaseString == 'X' AND length(name) > 3", schema),
            ("artist.recordName == 'x' AND abs(price) > 1 AND sum(age, price) > 2", schema),
            ("tags TOKENMATCHES 'a' AND name TOKENMATCHES 'b'", schema),
            ("tags[0] == 'x' AND tags[SIZE] > 1 AND addr['city'] != nil", schema),
            ("sum(mixed) > 1 AND mixed.@count > 1 AND mixed[FIRST] == 1", schema),
            ("tags UNION {'x'} == {'x'}", schema),
            ("kids.@max.age.self > 3 AND ANY tags.self == 'x' AND tags.@max.self > 'a'", schema),
            ("CAST(name, 'NSNumber') > 1 AND CAST(due, 'NSNumber') > 1", schema),
            ("CAST(active, 'NSNumber') > 0 AND CAST(artist, 'NSDictionary') != nil", schema),
            ("CAST(blob, 'NSString') != 'x' AND CAST(age, 'NSDate') < now()", schema),
            ("CAST(tags, 'NSSet') == tags AND CAST(mixed, 'NSDate') < now()", schema),
            ("max(age) > 3 AND max(mixed) > 3 AND min(age, price) < 2", schema),
            ("min(name, addr.city) < 'x' AND max(due, due) > now()", schema),
            ("allTokens TOKENMATCHES[cdl] 'x' AND self CONTAINS 'x'", schema),
            ("ALL tokenize:using:('x y', 'Cdl') IN allTokens", schema),
            ("CAST(name, 'NSDate') == nil AND NOT nil != CAST(tags, 'NSUUID')", schema),
            ("NOT (NOT CAST(CAST(age, 'NSSet'), 'NSData') == nil OR age == 1)", schema),
        ] as [(String, RecordSchema?)])
    func `a condition that may be meant is accepted`(format: String, schema: RecordSchema?) throws {
        #expect(throws: Never.self) {
            try RecordPredicate(format: format).check(schema: schema)
        }
    }

    @Test(arguments: [
        ("nam == 'x'", 0, "the field nam is unknown"),
        ("age > 3 AND Name == 'x'", 12, "the field Name is unknown"),
        ("secret == 'x'", 0, "the field secret is not queryable"),
        ("age == 'x'", 7, "a number and a text cannot be compared"),
        ("'x' != age", 0, "a text and a number cannot be compared"),
        ("due > 5", 6, "a date and a number cannot be compared"),
        ("tags > 'x'", 0, "`>` cannot be used on a list, which has no order"),
        ("spot < 3", 0, "`<` cannot be used on a location, which has no order"),
        ("ANY age > 3", 4, "a quantifier needs a collection"),
        ("age BEGINSWITH 'x'", 0, "BEGINSWITH compares texts"),
        (
            "tags CONTAINS 3", 0,
            "a number cannot be an element of a list in which each element is a text"
        ),
        ("name IN {1, 2}", 8, "a text cannot be an element of a list"),
        ("age BETWEEN {'a', 'b'}", 12, "a number cannot be compared with bounds of another kind"),
        ("age CONTAINS 3", 0, "CONTAINS needs a list or a text"),
        ("age.age == 25", 0, "a number has no member age"),
        ("addr.zip == 'x'", 0, "the field zip is unknown"),
        ("ANY kids.name == 'x'", 4, "the field name is unknown"),
        ("name + 1 == 2", 0, "arithmetic needs numbers"),
        ("-due < 1", 1, "arithmetic needs numbers"),
        (
            "distanceToLocation:fromLocation:(name, spot) < 9", 33,
            "distanceToLocation:fromLocation: is not defined for a text"
        ),
        ("uppercase(age) == 'X'", 10, "uppercase: is not defined for a number"),
        ("length(tags) > 1", 7, "length: is not defined for a list"),
        ("abs(name) > 1", 4, "abs: is not defined for a text"),
        ("sum(tags) > 1", 4, "sum: is not defined for a list"),
        ("max(spot) > 1", 4, "max: is not defined for a location"),
        ("age.@count > 1", 0, "@count is not defined for a number"),
        ("tags.@sum > 1", 0, "@sum is not defined for a text"),
        ("kids.@sum.name > 1", 0, "the field name is unknown"),
        ("age[0] == 1", 0, "an index is not defined for a number"),
        ("age[SIZE] == 1", 0, "[SIZE] is not defined for a number"),
        ("name[LAST] == 'x'", 0, "a text has no elements"),
        ("name UNION {'x'} != {}", 0, "UNION combines collections"),
        ("age TOKENMATCHES 'x'", 0, "TOKENMATCHES compares texts"),
        ("allTokens CONTAINS 'x'", 0, "the field allTokens is unknown"),
        ("ANY artist.recordName == 'x'", 4, "a quantifier needs a collection"),
        ("artist.name == 'x'", 0, "a reference has no member name"),
        ("SUBQUERY(age, $x, $x > 1).@count > 0", 9, "SUBQUERY is not defined for a number"),
        ("SUBQUERY(tags, $x, $x > 1).@count > 0", 24, "a text and a number cannot be compared"),
        ("SUBQUERY(tags, $x, $x.name == 'a').@count > 0", 19, "a text has no member name"),
        ("CAST(blob, 'NSNumber') > 1", 5, "CAST to NSNumber is not defined for data"),
        ("CAST(name, 'NSDate') < now()", 5, "CAST to NSDate is not defined for a text"),
        ("CAST(tags, 'NSUUID') != nil", 5, "CAST to NSUUID is not defined for a list"),
        ("CAST(age, 'NSSet') != {1}", 5, "CAST to NSSet is not defined for a number"),
        ("NOT CAST(name, 'NSDate') == nil", 9, "CAST to NSDate is not defined for a text"),
        ("CAST(nam, 'NSDate') == nil", 5, "the field nam is unknown"),
        (
            "TERNARY(CAST(name, 'NSDate') == nil, 1, 2) == 1", 13,
            "CAST to NSDate is not defined for a text"
        ),
        ("max(tags) > 3", 12, "a text and a number cannot be compared"),
        ("min(name, name) < 3", 18, "a text and a number cannot be compared"),
        ("max(due) == 'x'", 12, "a date and a text cannot be compared"),
    ])
    func `with a schema, fields and kinds are checked`(
        format: String, offset: Int, reason: String
    ) throws {
        try check(format, Self.schema, offset, reason)
    }

    @Test func `a schema without queryable fields is reported`() throws {
        let schema = RecordSchema(["secret": .init(.string, isQueryable: false)])
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(format: "name == 'x'").check(schema: schema)
        }
        #expect(error?.expected == "a queryable field, but there is none")
    }

    @Test func `an unknown field is refused with the nearest name`() throws {
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(format: "NAME == 'x'").check(
                schema: RecordSchema(["name": .init(.string)]))
        }
        var expected = PredicateError(
            .check, "the field NAME is unknown", at: SourceSpan(offset: 0, length: 4),
            found: "`NAME`", expected: "one of name", hint: "did you mean name?")
        expected.comparison = 0
        #expect(error == expected)
    }

    @Test(arguments: [
        ("nam == 'x'", "did you mean name?"), ("activ == YES", "did you mean active?"),
        ("zzzz == 1", nil),
        ("name == zzzz", "a word without quotes is a field name; write a text as \"zzzz\""),
        ("name == nam", "did you mean name?"), ("recordname == 'x'", "did you mean recordName?"),
        ("name IN {'a', zzzz}", "a word without quotes is a field name; write a text as \"zzzz\""),
        ("age == '3'", "write a number without quotes: 3"), ("age == 'x'", nil),
        ("active == 'true'", "write a boolean without quotes: TRUE"), ("active == 'on'", nil),
        ("tags == 'x'", "write ANY before the list to compare its elements"),
        ("tags > 'x'", "write ANY before the list to compare its elements"),
        ("tags IN {'x'}", "write ANY before the list to compare its elements"),
        ("tags == 3", nil), ("tags CONTAINS 3", nil), ("age > now()", nil),
        ("now() < name", nil),
        ("name == name-1", "write a text in quotes, also one with a hyphen: \"a-1\""),
        ("name == CAST('8f3c9a10-0000-4000-8000-0123456789ab', 'NSUUID')", nil),
        (
            "'8f3c9a10-0000-4000-8000-0123456789ab' == ident",
            "write a UUID as CAST(\"…\", \"NSUUID\"), or as %@ with an argument {\"$uuid\": \"…\"}"
        ),
        (
            "due > '2026-01-01'",
            "write a date as CAST(seconds since 2001, \"NSDate\"), "
                + "or as %@ with an argument {\"$date\": seconds since 1970}"
        ),
    ])
    func `a condition refused by the schema has a hint`(format: String, hint: String?) throws {
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(format: format).check(schema: Self.schema)
        }
        #expect(error?.hint == hint)
    }

    @Test(arguments: [
        ("store == 1 AND (p < 5 OR n < 10)", true), ("store IN {1, 2} AND r == 'x'", true),
        ("(store == 1 AND p < 5) AND n < 10", true),
        ("p < 5 AND (n < 10 AND (r == 'x' AND store IN {1}))", true),
        ("(store == 1 OR p < 5) AND n < 10", false),
        ("1 == store", true), ("store IN {1, 2} OR r == 'x'", false),
        ("store == 1 AND p < 5 OR n < 10", false), ("store > 2 AND r == 'x'", false),
        ("r == 'x'", false), ("TRUEPREDICATE", false), ("NOT store == 1", false),
    ])
    func `an indexed queryable field must be bound at the top`(format: String, isValid: Bool) throws
    {
        let schema = RecordSchema([
            "store": .init(.integer, isIndexedQueryable: true), "p": .init(.integer),
            "n": .init(.integer), "r": .init(.string),
        ])
        let predicate = try RecordPredicate(format: format)
        #expect(((try? predicate.check(schema: schema)) != nil) == isValid)
    }

    @Test func `a schema is read from JSON`() throws {
        let schema = try RecordSchema(json: [
            "name": "STRING", "tags": "STRING_LIST",
            "id": ["type": "INT64", "indexed": true], "x": ["type": "ANY", "queryable": false],
            "addr": ["type": "MAP_LIST", "fields": ["city": "STRING"]],
        ])
        #expect(
            schema
                == RecordSchema([
                    "name": .init(.string), "tags": .init(.list(.string)),
                    "id": .init(.integer, isIndexedQueryable: true),
                    "x": .init(.mixed, isQueryable: false),
                    "addr": .init(.list(.map(["city": .init(.string)]))),
                ]))
        let error = #expect(throws: JSONContractError.self) {
            try RecordSchema(json: ["a": ["type": "TEXT"]])
        }
        #expect(error?.path == "schema.a.type")
    }

    private func check(
        _ format: String, _ schema: RecordSchema?, _ offset: Int, _ reason: String
    ) throws {
        let predicate = try RecordPredicate(format: format)
        let error = #expect(throws: PredicateError.self) { try predicate.check(schema: schema) }
        #expect(error?.stage == .check)
        #expect(error?.offset == offset)
        #expect(error?.reason.hasPrefix(reason) == true, "\(error?.reason ?? "")")
    }
}
