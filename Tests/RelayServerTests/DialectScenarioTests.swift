import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Conditions that look right either work as they are meant, or are refused because they can never
/// fire.
@Suite struct DialectScenarioTests {
    private static let schema = """
        DEFINE SCHEMA
        RECORD TYPE Artwork (title STRING QUERYABLE, year INT64, artist REFERENCE QUERYABLE);
        """

    /// Saves a subscription with `query` beside its record type, and returns its entry.
    private static func save(
        _ relay: TestRelay, _ query: String, type: String = "Artwork",
        firesOn: String = #"["create","update","delete"]"#
    ) async throws -> JSONValue? {
        let answer = try await relay.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionType":"query","#
                + #""firesOn":\#(firesOn),"query":{"recordType":"\#(type)",\#(query)}}}]}"#)
        return answer.json.value(at: ["subscriptions", "0"])
    }

    @Test(arguments: [
        #""rql":"n > 5 && n < 3""#, #""where":{"n":{"$gt":5,"$lt":3}}"#, #""rql":"n == 1.5""#,
        #""predicate":"FALSEPREDICATE""#, #""predicate":"s CONTAINS ''""#,
        #""predicate":"n > nil""#, #""predicate":"n = 1.5""#,
        #""predicate":"createdUserRecordName = '__defaultOwner__'""#,
    ])
    func `a condition that can never fire is saved with a warning in every dialect`(
        query: String
    ) async throws {
        try await TestRelay.with { relay in
            let schema =
                "DEFINE SCHEMA RECORD TYPE Order (n INT64 QUERYABLE, s STRING QUERYABLE);"
            let defined = try await relay.admin(
                .put, "containers/iCloud.com.example.Art/development/schema",
                JSONValue.object(["text": .string(schema)]).text)
            #expect(defined.status == 200, "\(defined.text)")
            let saved = try await Self.save(relay, query, type: "Order")
            #expect(
                saved?.value(at: ["warnings", "0", "warning"]) == "neverTrue",
                "\(saved?.text ?? "")")
        }
    }

    @Test(arguments: [
        (
            #""where":{"title":{"$eq":"x"},"artist":{"$eq":3}}"#, "where.artist.$eq: a reference",
            "a number"
        ),
        (
            #""filterBy":[{"comparator":"EQUALS","fieldName":"titel","fieldValue":{"value":"x"}}]"#,
            "filterBy[0]: the field titel is unknown", "`titel`"
        ),
        (#""rql":"title == 3""#, "rql at byte 0: a text cannot be compared", "`title == 3`"),
    ])
    func `a refusal names the place and what was found there`(
        query: String, reason: String, found: String
    ) async throws {
        try await TestRelay.with { relay in
            try await relay.define(Self.schema)
            let entry = try await Self.save(relay, query)
            guard case .string(let text)? = entry?.value(at: ["reason"]) else {
                Issue.record("\(entry?.text ?? "")")
                return
            }
            #expect(text.hasPrefix("operations[0].subscription.query.\(reason)"), "\(text)")
            #expect(entry?.value(at: ["predicateError", "found"]) == .string(found))
        }
    }

    @Test func `a reference may be an argument, and a meaningless one is refused`()
        async throws
    {
        try await TestRelay.with { relay in
            let saved = try await Self.save(
                relay,
                #""predicate":"artist = %@","predicateArguments":[{"recordName":"leo"}]"#)
            #expect(
                saved?.value(at: ["query", "canonicalPredicate"])
                    == #"artist == CAST("leo", "CKReference")"#, "\(saved?.text ?? "")")
            let refused = try await Self.save(
                relay, #""predicate":"artist = %@","predicateArguments":[{"name":"leo"}]"#)
            #expect(refused?.value(at: ["serverErrorCode"]) == "BAD_REQUEST")
            guard case .string(let reason)? = refused?.value(at: ["reason"]) else { return }
            #expect(
                reason.hasPrefix(
                    "operations[0].subscription.query.predicateArguments[0]: an object must be a "
                        + "reference {recordName}"), "\(reason)")
        }
    }

    @Test(arguments: [
        ("year == 1503", "the field year is not queryable"), ("title == 'x'", nil),
        ("NOT (title == 'x' OR year > 3)", "the field year is not queryable"),
        ("nothing == 1", "there is no field nothing"),
        ("title.@count > 2", "@count of anything but a list field cannot be used"),
    ])
    func `a condition in rql is checked against the schema`(
        rql: String, reason: String?
    ) async throws {
        try await TestRelay.with { relay in
            try await relay.define(Self.schema)
            let entry = try await Self.save(relay, #""rql":"\#(rql)""#)
            guard let reason else {
                #expect(entry?.value(at: ["serverErrorCode"]) == nil, "\(entry?.text ?? "")")
                return
            }
            guard case .string(let text)? = entry?.value(at: ["reason"]) else {
                Issue.record("\(entry?.text ?? "")")
                return
            }
            #expect(text.contains(reason), "\(text)")
        }
    }

    @Test(arguments: [
        (#""rql":"store == 1""#, true), (#""rql":"store IN {1, 2} AND (n > 5 OR n < 3)""#, true),
        (#""predicate":"store == 1 AND n > 5""#, true),
        (#""rql":"store IN {1, 2} OR n == 1""#, false),
        (#""rql":"store == 1 AND n < 5 OR n < 10""#, false),
        (#""rql":"store > 2 AND n == 1""#, false), (#""rql":"n == 1""#, false),
        (#""rql":"TRUEPREDICATE""#, false), (#""predicate":"n > 5""#, false),
        (#""where":{"n":{"$gt":5}}"#, false),
    ])
    func `an indexed field is compared with constants in each condition`(
        query: String, isTaken: Bool
    ) async throws {
        try await TestRelay.with { relay in
            let path = "containers/iCloud.com.example.Art/development/schema"
            let fields = ["store", "n"].map { name -> JSONValue in
                var field: JSONObject = [
                    "name": .string(name), "type": "INT64", "queryable": true,
                ]
                if name == "store" { field["indexed"] = true }
                return .object(field)
            }
            let type: JSONValue = ["name": "Order", "fields": .array(fields)]
            let schema: JSONValue = ["recordTypes": [type]]
            let defined = try await relay.admin(.put, path, schema.text)
            #expect(defined.status == 200, "\(defined.text)")
            // CloudKit's schema language cannot express this, so an import leaves it unchanged.
            let text = "DEFINE SCHEMA RECORD TYPE Order (n INT64 QUERYABLE, store INT64 QUERYABLE);"
            let imported = try await relay.admin(
                .put, path, JSONValue.object(["text": .string(text)]).text)
            #expect(imported.status == 200, "\(imported.text)")
            #expect(imported.text.contains(#""indexed":true"#), "\(imported.text)")
            let saved = try await Self.save(relay, query, type: "Order")
            let isRefused = saved?.value(at: ["serverErrorCode"]) == "BAD_REQUEST"
            #expect(isRefused != isTaken, "\(saved?.text ?? "")")
        }
    }

    @Test func `a field in brackets is checked against the schema like others`() async throws {
        try await TestRelay.with { relay in
            try await relay.define(Self.schema)
            let entry = try await Self.save(relay, #""predicate":"SELF['year'] == 1503""#)
            guard case .string(let text)? = entry?.value(at: ["reason"]) else {
                Issue.record("\(entry?.text ?? "")")
                return
            }
            #expect(text.contains("the field year is not queryable"), "\(text)")
        }
    }

    @Test(arguments: [
        (#""predicate":"creationDate > now()""#, #"["update"]"#, "create"),
        (#""rql":"createdUserRecordName == 'x'""#, #"["update","delete"]"#, "create"),
        (#""predicate":"___modTime > now()""#, #"["delete"]"#, "create or update"),
        (#""predicate":"creationDate > now()""#, #"["create","update"]"#, nil),
        (#""predicate":"recordName == 'x'""#, #"["delete"]"#, nil),
    ])
    func `a condition on what is unknown about unkept records is refused`(
        query: String, firesOn: String, needed: String?
    ) async throws {
        try await TestRelay.with { relay in
            try await relay.store.extendSchema(
                of: TestRelay.container,
                with: [RecordTypeDefinition(known("Order"), isKept: false, isInferred: true)])
            let entry = try await Self.save(relay, query, type: "Order", firesOn: firesOn)
            guard needed != nil else {
                #expect(entry?.value(at: ["serverErrorCode"]) == nil, "\(entry?.text ?? "")")
                return
            }
            guard case .string(let text)? = entry?.value(at: ["reason"]) else {
                Issue.record("\(entry?.text ?? "")")
                return
            }
            #expect(text.contains("is never known for these changes"), "\(text)")
            #expect(text.contains("in firesOn, or a record type that the schema keeps"))
        }
    }

    @Test func `clients cannot write user records`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation(
                        "create", #"{"recordName":"r","recordType":"Users"}"#)))
            #expect(
                answer.json.value(at: ["records", "0", "serverErrorCode"]) == "ACCESS_DENIED",
                "\(answer.text)")
        }
    }
}
