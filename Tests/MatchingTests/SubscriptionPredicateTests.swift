import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

@Suite struct SubscriptionPredicateTests {
    private func query(
        _ form: PredicateForm?, _ source: JSONValue, arguments: [JSONValue] = []
    ) throws -> SubscriptionQuery {
        SubscriptionQuery(
            recordType: try #require(RecordType(rawValue: "Artwork")), form: form, source: source,
            arguments: arguments, canonical: "")
    }

    @Test func `no condition means every record`() throws {
        #expect(try query(nil, .null).recordPredicate() == .everyRecord)
    }

    @Test func `every form becomes a predicate`() throws {
        let filter: JSONValue = [
            ["comparator": "EQUALS", "fieldName": "artist", "fieldValue": ["value": "a"]]
        ]
        let expected = try RecordPredicate.parse(#"artist == "a""#, dialect: .nspredicate)
        #expect(try query(.filterBy, filter).recordPredicate() == expected)
        let text = try query(.predicate, "artist == %@", arguments: ["a"])
        #expect(try text.recordPredicate() == expected)
        for (form, source): (PredicateForm, JSONValue) in [
            (.rql, #"artist == "a""#), (.where, ["artist": ["$eq": "a"]]),
        ] {
            #expect(throws: Never.self) { try query(form, source).recordPredicate() }
        }
    }

    /// CloudKit's clients may write the constants first; the meaning is the same for every record.
    @Test(arguments: [
        ("ANY {'red', 'green'} == colour", #"colour IN {"red", "green"}"#),
        ("NONE {'red', NULL} ==[c] colour", #"NOT colour IN[c] {"red", nil}"#),
        ("NOT {'red', 3} CONTAINS a.colour", #"NOT a.colour IN {"red", 3}"#),
        ("ANY {'red', 3} IN colour", #"colour CONTAINS "red" OR colour CONTAINS 3"#),
        (
            "ALL {'red', 'e'} IN[c] colour",
            #"colour CONTAINS[c] "red" AND colour CONTAINS[c] "e""#
        ),
        (
            "NONE {'red', NULL} IN colour",
            #"NOT (colour CONTAINS "red" OR colour CONTAINS nil)"#
        ),
        ("SOME {'red'} IN colour", #"colour CONTAINS "red""#),
        ("ALL {'red'} == colour", #"ALL {"red"} == colour"#),
        ("ANY {'red'} == 'red'", #"ANY {"red"} == "red""#),
        ("ANY {} IN colour", "ANY {} IN colour"), ("ANY {} == colour", "colour IN {}"),
    ])
    func `constants on the left are turned around, so that keys find the field`(
        format: String, canonical: String
    ) throws {
        let meant = try query(.predicate, .string(format)).recordPredicate()
        #expect(meant.canonicalText == canonical)
        let written = try RecordPredicate.parse(.string(format), dialect: .nspredicate)
        let values: [FieldValue] = [
            .null, .string("red"), .string("RED hot"), .string("x"), .integer(3), .bool(true),
            .list([.string("x"), .string("Red")]), .list([]), .list([.integer(3), .null]),
            .set([.string("red")]), .map(["k": .string("red")]),
            .timestamp(Timestamp(seconds: 3)),
        ]
        for value in values {
            let record: RecordFields = ["colour": value, "a": .map(["colour": value])]
            let answers = [meant, written].map { Self.answer($0.evaluate(on: record)) }
            #expect(answers[0] == answers[1], "\(value)")
        }
    }

    /// Returns true or false, or `nil` for an error that names the operator.
    private static func answer(_ outcome: PredicateOutcome) -> Bool? {
        switch outcome {
        case .true: true
        case .false: false
        case .error: nil
        }
    }

    @Test func `a search of all tokens reads the whole record, as the index does`() throws {
        let query = try query(.predicate, "allTokens TOKENMATCHES[cdl] 'hello'")
        let predicate = try query.recordPredicate()
        #expect(predicate.fieldsRead == nil)
        let index = SubscriptionIndex(seed: 0)
        let owner = SubscriptionOwner(
            container: ContainerKey(
                container: try #require(ContainerID(rawValue: "iCloud.com.example.Art")),
                environment: .development),
            database: .public, user: try #require(UserID(rawValue: "alice")))
        let subscription = Subscription(
            id: try #require(SubscriptionID(rawValue: "s")), container: owner.container,
            database: .public, owner: owner.user, scope: .query(query, zoneID: nil),
            firesOn: .all)
        index.insert(try IndexedSubscription(subscription, serial: 1))
        for (text, expected): (String, [UInt64]) in [("Hello, world", [1]), ("world", [])] {
            var change = RecordChange(
                .create, of: query.recordType,
                RecordID(recordName: try #require(RecordName(rawValue: "r"))))
            change.after = RecordImage(["title": .string(text)])
            var serials: [UInt64] = []
            let dear = index.matches(for: change, now: nil, into: &serials)
            #expect(dear == nil && serials == expected, "\(text)")
        }
    }

    /// Arguments as clients write them in the place of `%@`, and the field values that they mean.
    static let arguments: [(json: String, value: FieldValue)] = [
        (#"{"recordName":"leo"}"#, reference("leo")),
        (#"{"recordName":"leo","action":"DELETE_SELF"}"#, reference("leo")),
        (#"{"recordName":"leo","zoneID":{"zoneName":"z"}}"#, reference("leo", zone: "z")),
        (
            #"{"recordName":"leo","recordType":"Artist","fields":{},"recordChangeTag":"1"}"#,
            reference("leo")
        ),
        (#"{"value":{"recordName":"leo"},"type":"REFERENCE"}"#, reference("leo")),
        (#"{"value":{"recordName":"leo"}}"#, reference("leo")),
        (#"{"value":5,"type":"INT64"}"#, .integer(5)),
        (#"{"value":"x"}"#, .string("x")),
        (
            #"{"value":1700000000000,"type":"TIMESTAMP"}"#,
            .timestamp(Timestamp(seconds: 1_700_000_000))
        ),
        (#"{"value":"AQI=","type":"BYTES"}"#, .bytes([1, 2])),
        (#"{"value":["a","b"],"type":"STRING_LIST"}"#, .list([.string("a"), .string("b")])),
        (#"[{"recordName":"leo"},{"value":1}]"#, .list([reference("leo"), .integer(1)])),
        (#"{"$ref":"leo"}"#, reference("leo")), (#"{"$map":{"a":1}}"#, .map(["a": .integer(1)])),
    ]

    private static func reference(_ name: String, zone: String = "_defaultZone") -> FieldValue {
        guard let name = RecordName(rawValue: name), let zone = ZoneID(zoneName: zone) else {
            return .null
        }
        return .reference(RecordReference(RecordID(recordName: name, zoneID: zone)))
    }

    @Test(arguments: arguments)
    func `an argument is read as CloudKit's clients write values`(
        json: String, value: FieldValue
    ) throws {
        let query = try query(
            .predicate, "artist = %@", arguments: [try JSONValue(parsing: json)])
        try query.checkArguments()
        let predicate = try query.recordPredicate()
        let prepared = try PreparedPredicate(predicate)
        #expect(prepared.evaluate(on: ["artist": value]) == .true)
        #expect(prepared.evaluate(on: ["artist": .string("somebody else")]) == .false)
    }

    @Test(arguments: [
        #"{"a":1}"#, "{}", #"{"recordName":"leo","name":"x"}"#, #"{"value":1,"unit":"m"}"#,
        #"{"latitude":1}"#,
    ])
    func `an argument that would become an unintended dictionary is refused`(json: String) throws {
        for (argument, path) in [(json, "[0]"), ("[1,\(json)]", "[0][1]")] {
            let query = try query(
                .predicate, "artist = %@", arguments: [try JSONValue(parsing: argument)])
            let error = #expect(throws: PredicateError.self) { try query.checkArguments() }
            #expect(error?.path == "predicateArguments\(path)")
            #expect(
                error?.reason
                    == "an object must be a reference {recordName}, a typed value {value, type}, "
                    + "a location {latitude, longitude}, or a dictionary as {$map: {…}}")
        }
    }

    @Test func `an argument that is not a value is refused with its path`() throws {
        let bad = try query(.predicate, "artist == %@", arguments: [["$nope": 1]])
        let error = #expect(throws: PredicateError.self) { try bad.recordPredicate() }
        #expect(error?.path == "predicateArguments[0]")
        #expect(error?.stage == .parse)
    }
}
