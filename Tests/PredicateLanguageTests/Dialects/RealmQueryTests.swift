import PredicateLanguage
import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

@Suite("Realm queries")
struct RealmQueryTests {
    static let record: RecordFields = [
        "age": .integer(30), "name": .string("Alice"), "nick": .null, "sold": .bool(true),
        "tags": .list([.string("red"), .string("Green")]), "empty": .list([]),
        "price": .double(2.5), "id": .uuid(UUIDBytes(high: 1, low: 2)),
        "place": .map([
            "type": .string("Point"), "coordinates": .list([.double(12.5), .double(55.7)]),
        ]),
        "kids": .list([.map(["age": .integer(3)]), .map(["age": .integer(9)])]),
        "home": .map(["city": .string("Paris")]), "a-b": .integer(1), "in": .integer(5),
        "path": .string(#"a\nb"#), "when": .timestamp(Timestamp(seconds: 1_512_130_073)),
    ]

    struct Example: CustomTestStringConvertible, Sendable {
        let query: String
        let holds: Bool
        init(_ query: String, _ holds: Bool) { (self.query, self.holds) = (query, holds) }
        var testDescription: String { query }
    }

    @Test(arguments: [
        Example("name CONTAINS ''", true), Example("nick CONTAINS ''", false),
        Example("nick CONTAINS nil", true), Example("name LIKE NULL", false),
        Example("age == 036", true), Example("age == 0x1E", true),
        Example("sold == 1", false), Example("sold == true", true),
        Example("tags == 'red'", true), Example("ALL tags == 'red'", false),
        Example("ALL empty == 'red'", true), Example("empty == 'red'", false),
        Example("tags.@count == 2 && kids.@size == 2", true),
        Example("kids.@max.age == 9 AND kids.@sum.age == 12", true),
        Example("kids.age > 8", true), Example("ALL kids.age > 8", false),
        Example("tags.length == 5", true), Example("ALL tags.length > 3", false),
        Example("NONE tags.LENGTH == 4", true), Example("3 IN tags.length", true),
        Example("empty.length == 0", false), Example("ALL empty.length == 7", true),
        Example("kids.length == 1", false), Example("name.length == 5", false),
        Example("empty == {}", true), Example("{} == empty", true), Example("tags == {}", false),
        Example("empty != {}", false), Example("empty <= {}", false),
        Example("age.@type IN {'int', 'string'}", true), Example("name.@type IN {'int'}", false),
        Example("age.@count == 1", false), Example("NOT age.@count == 1", true),
        Example("nick.@count == 0", true), Example("nick < 3 || nick <= 3", false),
        Example("nick <= null", true), Example("a-b == 1", true), Example("in == 5", true),
        Example("age / 4 == 7", true), Example("age / 0 > 7", true),
        Example(#"path == 'a\nb'"#, true), Example("name.@count == 5", true),
        Example("when == T1512130073:0", true), Example("when == 2017-12-01@12:07:53", true),
        Example("id == uuid(00000000-0000-0001-0000-000000000002)", true),
        Example("SUBQUERY(kids, $k, $k.age > 5).@count == 1", true),
        Example("SUBQUERY(kids, $k, age > 5).@count == 1", true),
        Example("SUBQUERY(kids, $$k-1, $$k-1.age > 5).@count == 1", true),
        Example("kids[0].age == 3 && kids[LAST].age == 9 && kids[7] == nil", true),
        Example("home['city'] == 'Paris' && home.@keys == 'city'", true),
        Example("age.@type == 'integer' && name.@type == 'string'", true),
        Example("{'red', 'Green'} == tags", true), Example("'GREEN' IN[c] tags", true),
        Example("age BETWEEN {30, 40}", true), Example("NOT age BETWEEN {40, 30}", true),
        Example("place GEOWITHIN geobox([12, 55], [13, 56])", true),
        Example("place GEOWITHIN geobox([13, 55], [12, 56])", false),
        Example("place GEOWITHIN geocircle([12.5, 55.6], 0.002)", true),
        Example("place GEOWITHIN geocircle([12.5, 55.6], 0.001)", false),
        Example(
            "place GEOWITHIN geopolygon({[12, 55], [13, 55], [13, 56], [12, 56], [12, 55]})", true),
        Example(
            "place GEOWITHIN geopolygon({[12, 55], [13, 55], [13, 56], [12, 56], [12, 55]}, "
                + "{[12.4, 55.6], [12.6, 55.6], [12.6, 55.8], [12.4, 55.8], [12.4, 55.6]})", false),
        Example("place GEOWITHIN geopolygon({[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]})", false),
    ]) func `an example query has the expected answer`(example: Example) throws {
        let predicate = try RecordPredicate(rql: example.query)
        #expect(predicate.evaluate(on: Self.record) == (example.holds ? .true : .false))
        let again = try RecordPredicate(format: predicate.canonicalText)
        #expect(again == predicate)
    }

    @Test(
        arguments: [
            ("age == ", 7, "expected a path or a constant, found the end of the query"),
            ("age == 3 &| b == 1", 9, "expected a name, constant or operator, found &"),
            (
                "ü == 1 b", 8,
                "expected AND, OR, SORT, DISTINCT, LIMIT or the end of the query, found b"
            ),
            ("a IN [1]", 5, "expected a path or a constant, found ["),
            ("a == 08", 5, "expected octal digits after a leading zero, found 08"),
            ("a <[c] 'x'", 3, "expected the right side, without [c], found [c]"),
            ("a == $K0", 5, ""),
            ("'a", 0, "expected the closing quote, found 'a"),
            (
                #"a == '\q'"#, 6,
                #"expected \" \' \\ \/ \b \f \n \r \t \0 or \u and four hexadecimal digits, found \q"#
            ),
            ("a BETWEEN {1}", 10, "BETWEEN needs a list of two bounds, found 1"),
            ("a == $1", 5, "there is no argument for $1; arguments given: 1, counted from 0"),
            ("name", 4, "expected a comparison operator, found the end of the query"),
            ("name matches 'x'", 5, "expected a comparison operator, found matches"),
            ("a == 1 OR b is null", 12, "expected a comparison operator, found is"),
            (
                "a == 1 AND NOT (b)", 18,
                "expected a comparison operator, found the end of the query"
            ),
            ("Any list.x == 1", 4, "expected a comparison operator, found list"),
        ] as [(String, Int, String)])
    func `a wrong query is refused with its offset`(query: String, offset: Int, reason: String) {
        do {
            _ = try RealmQuery(parsing: query, arguments: [.string("x")])
            #expect(reason.isEmpty)
        } catch {
            #expect(error.offset == offset)
            #expect(error.reason == reason)
        }
    }

    @Test(
        arguments: [
            ("name matches 'x'", "to match a pattern, use LIKE"),
            (
                "a IS NOT NULL",
                "to find records without a value, write == null; with a value, != null"
            ),
            ("a not in {1}", "write NOT before the comparison: NOT a IN {1, 2}"),
            ("Any list.x == 1", "this keyword is spelt differently: write ANY"),
            ("a In {1}", "this keyword is spelt differently: write IN"),
            ("a CONTAIN 'x'", "did you mean CONTAINS?"), ("a LKE 'x'", "did you mean LIKE?"),
            ("a STARTSWITH 'x'", "did you mean BEGINSWITH?"),
            ("a rlike 'x'", "to match a pattern, use LIKE"),
            ("a === 'x'", "write == for equality"), ("a !== 'x'", "did you mean !=?"),
            ("a == %@", "write arguments as $0, $1 …"),
            ("a IN ('x', 'y')", "write a list in braces: {1, 2}"),
        ])
    func `a missing operator is refused with a hint`(query: String, hint: String) {
        #expect(throws: PredicateError.self) { try RealmQuery(parsing: query) }
        do { _ = try RealmQuery(parsing: query) } catch { #expect(error.hint == hint) }
    }

    @Test(
        arguments: [
            ("link == O12", "12"), ("link == L3:12", "18"), ("link == O007", "7"),
            ("link == Lffffffffffffffff:ffffffffffffffff", "18446744073709551615"),
            ("link == obj('Item', 12)", "12"), ("link IN {NULL, O12}", "12"),
        ])
    func `an object key is a link to the record of that name`(query: String, name: String) throws {
        let predicate = try RecordPredicate(rql: query)
        #expect(try RecordPredicate(format: predicate.canonicalText) == predicate)
        let recordName = try #require(RecordName(rawValue: name))
        let link = RecordReference(RecordID(recordName: recordName))
        #expect(predicate.evaluate(on: ["link": .reference(link)]) == .true)
        #expect(predicate.evaluate(on: ["link": .map(["recordName": .string(name)])]) == .true)
        #expect(predicate.evaluate(on: ["link": .map(["_id": .string(name)])]) == .true)
        #expect(predicate.evaluate(on: ["link": .map(["_id": .string("13")])]) == .false)
        #expect(predicate.evaluate(on: ["link": .string(name)]) == .false)
    }

    @Test func `an object matches a link only if its key is spelled the same`() throws {
        let predicate = try RecordPredicate(rql: "link == obj('Item', 'zo\u{e9}')")
        #expect(predicate.evaluate(on: ["link": .map(["_id": .string("zo\u{e9}")])]) == .true)
        #expect(predicate.evaluate(on: ["link": .map(["_id": .string("zoe\u{301}")])]) == .false)
    }

    @Test func `an object key has at most 64 bits`() {
        let tooLong = "a == L" + String(repeating: "e", count: 17) + ":1"
        #expect(throws: PredicateError.self) { try RecordPredicate(rql: tooLong) }
    }

    @Test(
        arguments: [
            ("@links.@count == 3", true), ("@links.@size > 3", false),
            ("@links.Person.items.@count == 2", true),
            ("@links.Person.items.account > 20", true),
            ("ALL @links.Person.items.account > 20", false),
            ("@links.Person.items.@sum.account == 31", true),
            ("@links.Person.favourite.name == 'Bo'", true),
            ("@links.Dog.owner.@count == 0", true),
            ("SUBQUERY(@links.Person.items, $p, $p.account >= 10).@count == 2", true),
            ("discount.@links.@count == 1", true),
            ("discount.@links.Item.discount.price == 5", true),
        ])
    func `incoming links are read from the member @links`(query: String, holds: Bool) throws {
        let record: RecordFields = [
            "@links": .map([
                "Person": .map([
                    "items": .list([
                        .map(["account": .integer(21)]), .map(["account": .integer(10)]),
                    ]),
                    "favourite": .list([.map(["name": .string("Bo")])]),
                ])
            ]),
            "discount": .map([
                "@links": .map([
                    "Item": .map(["discount": .list([.map(["price": .integer(5)])])])
                ])
            ]),
        ]
        let predicate = try RecordPredicate(rql: query)
        #expect(predicate.evaluate(on: record) == (holds ? .true : .false))
        try RealmQuery(parsing: query).check(against: RecordSchema(inferredFrom: [record]))
    }

    @Test(arguments: [
        ("cafe big", true), ("CAFÈ", true), ("cafe\u{301}", true), ("naive", true),
        ("caf*", true), ("cafe tea", false), ("coffee -tea", true), ("-cafe", false),
        ("Rødgrød", true), ("rodgrod", false), ("får", true), ("fa\u{30A}r", true),
        ("far", false), ("😊", false), ("coffee 😊", false), ("-😊", true),
        ("full-text", true), ("full-tea", false), ("cup\tof", true),
    ])
    func `a search for words ignores case and marks`(words: String, holds: Bool) throws {
        let predicate = try RecordPredicate(rql: "story TEXT $0", arguments: [.string(words)])
        let story = "At the cafè, a BIG cup of coffee; rødgrød, Får, nai\u{308}ve, full-text"
        #expect(predicate.evaluate(on: ["story": .string(story)]) == (holds ? .true : .false))
    }

    @Test(arguments: [false, true])
    func `exactly one of the shapes around a corner contains it`(isReversed: Bool) throws {
        let corner: RecordFields = ["place": .list([.integer(1), .integer(1)])]
        var holders: [String] = []
        for (west, south) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let (east, north) = (west + 1, south + 1)
            let ring = [
                "[\(west), \(south)]", "[\(east), \(south)]", "[\(east), \(north)]",
                "[\(west), \(north)]", "[\(west), \(south)]",
            ]
            let points = isReversed ? ring.reversed() : ring
            let query = "place GEOWITHIN geopolygon({\(points.joined(separator: ", "))})"
            if try RecordPredicate(rql: query).evaluate(on: corner) == .true {
                holders.append(query)
            }
        }
        // The corner is not in the square to its south-west, as in Realm's own tests.
        #expect(holders.count == 1 && holders.first?.contains("{[0, 0]") == false)
    }

    @Test func `a link counts as one element`() throws {
        let link = try FieldValue(notation: ["$ref": "n"])
        let predicate = try RecordPredicate(rql: "link.@count == 1 AND other.@count == 0")
        #expect(predicate.evaluate(on: ["link": link, "other": .null]) == .true)
        #expect(predicate.evaluate(on: ["link": .null, "other": link]) == .false)
    }

    @Test func `incoming links of all objects in a list are added up`() throws {
        let links = FieldValue.map([
            "Person": .map(["items": .list([.map([:]), .map([:])]), "fav": .list([.map([:])])])
        ])
        let item = FieldValue.map(["@links": links])
        let predicate = try RecordPredicate(rql: "items.@links.@count == 6")
        #expect(predicate.evaluate(on: ["items": .list([item, item])]) == .true)
    }

    @Test func `a search for no word is refused`() throws {
        let predicate = try RecordPredicate(rql: "story TEXT ' '")
        let error = #expect(throws: PredicateError.self) { try predicate.check() }
        #expect(error?.reason == "TEXT needs words to search for, but there are none")
        #expect(predicate.evaluate(on: ["story": .string("a")]) == .false)
    }

    @Test func `a dictionary behind a list has its own maximum`() throws {
        let record: RecordFields = [
            "links": .list([
                .map(["dict": .map(["a": .integer(1), "b": .integer(7)])]),
                .map(["dict": .map(["a": .integer(3)])]),
            ])
        ]
        let schema = RecordSchema(inferredFrom: [record])
        let query = try RealmQuery(parsing: "links.dict.@max == 3 AND links.dict.@sum == 8")
        try query.check(against: schema)
        #expect(query.predicate.evaluate(on: record) == .true)
        let ofObjects = try RealmQuery(parsing: "links.@max == 3")
        #expect(throws: PredicateError.self) { try ofObjects.check(against: schema) }
    }

    @Test func `a record without incoming links has no answer`() throws {
        let query = try RealmQuery(parsing: "@links.Person.items.@count == 0")
        guard
            case .error(.wrongKind(operation: "@links", _)) = query.predicate.evaluate(on: [
                "a": .integer(1)
            ])
        else {
            Issue.record("there is an answer")
            return
        }
        let schema = RecordSchema(inferredFrom: [["a": .integer(1)]])
        #expect(throws: PredicateError.self) { try query.check(against: schema) }
    }

    @Test(arguments: [
        ("a.@type == 'integers'", "@type must be one of "),
        ("b == 1 && a.@type != 'x'", "@type must be one of "),
        ("a >= obj('Art', 'n')", "links and types have no order"),
        ("a.@type < 'int'", "links and types have no order"), ("a.@type == 'INT32'", nil),
        ("a.@type IN {'int', 'integers'}", "@type must be one of "), ("a.@type IN {'INT32'}", nil),
        ("a == obj('Art', 'n') && b > 1", nil), ("a IN {obj('Art', 'n')}", nil),
    ])
    func `unknown types and unordered comparisons are refused at save`(
        query: String, reason: String?
    ) throws {
        let predicate = try RecordPredicate(rql: query)
        guard let reason else { return try predicate.check() }
        let error = #expect(throws: PredicateError.self) { try predicate.check() }
        #expect(error?.reason.hasPrefix(reason) == true)
    }

    private static let kinds = RecordSchema([
        "name": .init(.string), "age": .init(.integer), "price": .init(.double),
        "due": .init(.timestamp), "tags": .init(.list(.string)), "what": .init(.mixed),
        "blob": .init(.bytes),
    ])

    @Test(arguments: [
        ("name + 1 == 2", "arithmetic needs numbers, found a text"),
        ("due + 1 < age", "arithmetic needs numbers, found a date"),
        ("tags * 2 > 1", "arithmetic needs numbers, found a text"),
        ("age == price / blob", "arithmetic needs numbers, found data"),
        ("name.@type == 'int'", "the @type of a text is never int"),
        ("ANY tags.@type == 'date'", "the @type of a text is never date"),
        ("age.@type == 'string'", "the @type of a number is never string"),
        ("due.@type == 'numeric'", "the @type of a date is never numeric"),
        ("name IN {1, 2}", "a text cannot be compared with a number"),
        ("NOT name IN {1, 2}", "a text cannot be compared with a number"),
        ("name == {1, true}", "a text cannot be compared with a number"),
        ("ANY {1, 2} == name", "a text cannot be compared with a number"),
        ("due IN {1}", "a date cannot be compared with a number"),
        ("age > {'x'}", "a number cannot be compared with a text"),
        ("ANY tags IN {1}", "a text cannot be compared with a number"),
        ("age IN {'1'} || age == 2", "a number cannot be compared with a text"),
    ])
    func `a comparison that never fits the schema is refused`(query: String, reason: String) throws
    {
        let error = #expect(throws: PredicateError.self) {
            try RealmQuery(parsing: query).check(against: Self.kinds)
        }
        #expect(error?.reason == reason)
    }

    @Test(arguments: [
        ("age > '3'", "write a number without quotes: 3"), ("age > 'x'", nil),
        ("'3.5' < price", "write a number without quotes: 3.5"), ("name == 3", nil),
        ("due > '2026-01-31'", "write a date without quotes: 2026-01-31@12:00:00"),
        ("due > 5", nil), ("'name' == 'x'", "write a field name without quotes"),
    ])
    func `a constant of another kind is refused with a hint how to write it`(
        query: String, hint: String?
    ) throws {
        let error = #expect(throws: PredicateError.self) {
            try RealmQuery(parsing: query).check(against: Self.kinds)
        }
        #expect(error?.hint == hint)
    }

    @Test func `the hints for dates and links are in Realm's own form`() throws {
        #expect(throws: Never.self) {
            try RealmQuery(parsing: "due > 2026-01-31@12:00:00").check(against: Self.kinds)
        }
        let links = RecordSchema(["link": .init(.reference), "done": .init(.boolean)])
        #expect(throws: Never.self) {
            try RealmQuery(parsing: "link == obj(\"Type\", \"name\") && done == true").check(
                against: links)
        }
        let error = #expect(throws: PredicateError.self) {
            try RealmQuery(parsing: "link == 'name'").check(against: links)
        }
        #expect(error?.hint == "write a link as obj(\"Type\", \"name\")")
    }

    @Test(arguments: [
        ("nam == 'x'", "did you mean name?"), ("recordname == 'x'", "did you mean recordName?"),
        ("name == Dawn", "a word without quotes is a field name; write a text as \"Dawn\""),
        ("name == nam", "did you mean name?"), ("zzzz == 1", nil),
    ])
    func `an unknown field is refused with the nearest name`(query: String, hint: String?) throws {
        let error = #expect(throws: PredicateError.self) {
            try RealmQuery(parsing: query).check(against: Self.kinds)
        }
        #expect(error?.hint == hint)
        #expect(error?.expected == "one of age, blob, due, name, price, tags, what")
    }

    @Test(arguments: [
        "age + price * 2 > 1", "what + 1 == 2", "name.@type == 'string'",
        "age.@type == 'numeric'", "name IN {1, 'x'}", "name IN {nil, 1}", "name IN {}",
        "age IN {1.5, 2}", "what IN {1}", "blob IN {'x'}", "recordName IN {'x'}",
        "price.@type == 'int'", "name.@type == 'null'", "name.@type != 'int'",
        "what.@type == 'date'", "tags.@type == 'string'", "blob.@type == 'binary'",
        "ANY tags.length > 3", "5 IN tags.Length", "age.@type IN {'int', 'string'}",
    ])
    func `a comparison that may fit the schema is accepted`(query: String) throws {
        #expect(throws: Never.self) {
            try RealmQuery(parsing: query).check(against: Self.kinds)
        }
    }

    @Test func `a shape may be passed as one argument`() throws {
        let polygon: FieldValue = .map([
            "type": .string("Polygon"),
            "coordinates": .list([
                .list(
                    [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]].map { pair in
                        .list(pair.map { FieldValue.integer($0) })
                    })
            ]),
        ])
        let shapes: [FieldValue] = [
            .string("geobox([0, 0], [2, 2])"), .string("geocircle([1, 1], 0.01)"),
            .string("geopolygon({[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]})"), polygon,
        ]
        let inside: RecordFields = ["place": .list([.integer(1), .integer(1)])]
        let outside: RecordFields = ["place": .list([.integer(5), .integer(1)])]
        let open = try RecordPredicate(rql: "place GEOWITHIN $0")
        for shape in shapes {
            let bound = try RecordPredicate(rql: "place GEOWITHIN $0", arguments: [shape])
            #expect(try RecordPredicate(format: bound.canonicalText) == bound)
            #expect(bound.evaluate(on: inside) == .true)
            #expect(bound.evaluate(on: outside) == .false)
            #expect(open.evaluate(on: inside, variables: ["0": shape]) == .true)
            #expect(open.evaluate(on: outside, variables: ["0": shape]) == .false)
        }
        for wrong: FieldValue in [
            .integer(1), .string("geobox([0, 0])"), .string("geobox([0, 0], [2, 2]) x"),
            .string("geobox([0, 0], [$0, 2])"), .map(["type": .string("Point")]),
        ] {
            #expect(throws: PredicateError.self) {
                try RecordPredicate(rql: "place GEOWITHIN $0", arguments: [wrong])
            }
        }
    }

    @Test func `nesting and length have limits`() throws {
        let depth = Limits.maximumPredicateDepth
        func nested(_ count: Int) -> String {
            String(repeating: "(", count: count) + "a == 1" + String(repeating: ")", count: count)
        }
        _ = try RealmQuery(parsing: nested(depth))
        for query in [
            nested(depth + 1), nested(100_000), String(repeating: "!", count: 100_000) + "(a == 1)",
            "a == 1" + String(repeating: " + 1", count: 50_000),
            String(repeating: "SUBQUERY(a, $x, ", count: 10_000),
        ] {
            #expect(throws: PredicateError.self) { try RealmQuery(parsing: query) }
        }
        let bytes = Limits.maximumPredicateBytes
        let text = "a == '" + String(repeating: "x", count: bytes - 7) + "'"
        _ = try RealmQuery(parsing: text)
        #expect(
            throws: PredicateError(
                .parse, "the query has \(bytes + 1) bytes; \(bytes) are allowed",
                expected: "at most \(bytes) bytes")
        ) { try RealmQuery(parsing: text + " ") }
        let elements = Limits.maximumPredicateListElements
        let list = String(repeating: "1,", count: elements - 1) + "1"
        _ = try RealmQuery(parsing: "a IN {\(list)}")
        #expect(throws: PredicateError.self) { try RealmQuery(parsing: "a IN {\(list),1}") }
    }

    @Test func `hostile needles and patterns are matched in linear time`() throws {
        let run = String(repeating: "a", count: 100_000)
        let text: RecordFields = ["a": .string(run)]
        for (query, holds) in [
            ("a CONTAINS '\(run.dropLast())b'", false), ("a CONTAINS '\(run)'", true),
            ("a LIKE '\(String(repeating: "*a", count: 2000))*b'", false),
            ("a LIKE '*\(run.prefix(1000))b*'", false),
        ] {
            let predicate = try RecordPredicate(rql: query)
            let duration = Duration.processorTime {
                #expect(predicate.evaluate(on: text) == (holds ? .true : .false))
            }
            #expect(duration < .seconds(20))
        }
        let longest = Limits.maximumRegularExpressionBytes
        _ = try RecordPredicate(rql: "a LIKE '\(run.prefix(longest))'")
        #expect(throws: PredicateError.self) {
            try RecordPredicate(rql: "a LIKE '\(run.prefix(longest + 1))'")
        }
    }

    // MARK: Flexible Sync

    static let schema = RecordSchema([
        "store_id": .init(.integer, isIndexedQueryable: true), "region": .init(.string),
        "active_promotions": .init(.integer), "num_employees": .init(.integer),
        "genres": .init(.list(.string)), "secret": .init(.string, isQueryable: false),
        "obj1": .init(.map(["field": .init(.string)])),
    ])

    @Test(arguments: [
        Example("store_id IN {1,2,3} AND region == 'Northeast'", true),
        Example("store_id == 1 AND (active_promotions < 5 OR num_employees < 10)", true),
        Example("(store_id == 1 AND num_employees < 10) AND region == 'x'", true),
        Example("(store_id == 1 OR num_employees < 10) AND region == 'x'", false),
        Example("store_id IN {1,2,3} OR region == 'Northeast'", false),
        Example("store_id == 1 AND active_promotions < 5 OR num_employees < 10", false),
        Example("store_id > 2 AND region == 'Northeast'", false),
        Example("region == 'Northeast'", false), Example("truepredicate", false),
        Example("store_id == 1 AND genres.@count > 1", true),
        Example("store_id == 1 AND region.@count > 1", false),
        Example("store_id == 1 AND genres.@max > 1", false),
        Example("store_id == 1 AND obj1.field == 'foo'", false),
        Example("store_id == 1 AND 'comedy' IN genres", true),
        Example("store_id == 1 AND {'comedy', 'horror'} IN genres", false),
        Example("store_id == 1 AND ANY {'comedy', 'horror'} != ANY genres", false),
        Example("store_id == 1 AND secret == 'x'", false),
        Example("store_id == 1 SORT(region ASC)", false),
        Example("store_id == 1 AND SUBQUERY(genres, $x, TRUEPREDICATE).@count > 1", false),
    ]) func `a subscription obeys Flexible Sync's table`(example: Example) throws {
        let query = try RealmQuery(parsing: example.query)
        do {
            try query.checkSubscription(schema: Self.schema)
            #expect(example.holds)
        } catch {
            #expect(!example.holds, "\(error)")
            #expect(error.stage == .check)
        }
    }
}
