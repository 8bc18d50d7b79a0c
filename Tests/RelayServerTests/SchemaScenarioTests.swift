import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import Testing

/// The schema: how it is learned, what is refused, and how it is written as text.
@Suite struct SchemaScenarioTests {
    private static let text = """
        DEFINE SCHEMA

            CREATE ROLE Editor;

            // What a museum shows.
            RECORD TYPE Artwork (
                "___createTime" TIMESTAMP QUERYABLE,
                "___recordID"   REFERENCE QUERYABLE,
                artist          REFERENCE QUERYABLE,
                places          LIST<LOCATION>,
                secret          ENCRYPTED STRING,
                title           STRING QUERYABLE SORTABLE SEARCHABLE,
                year            INT64 SORTABLE, -- not queryable
                GRANT WRITE TO "_creator",
                GRANT READ, CREATE TO "_icloud"
            );
            RECORD TYPE Note (text STRING);
        """

    private static let canonical = """
        DEFINE SCHEMA

            CREATE ROLE Editor;

            RECORD TYPE Artwork (
                "___createTime" TIMESTAMP QUERYABLE,
                "___recordID" REFERENCE QUERYABLE,
                artist REFERENCE QUERYABLE,
                places LIST<LOCATION>,
                secret ENCRYPTED STRING,
                title STRING QUERYABLE SORTABLE SEARCHABLE,
                year INT64 SORTABLE,
                GRANT WRITE TO "_creator",
                GRANT READ TO "_icloud",
                GRANT CREATE TO "_icloud"
            );

            RECORD TYPE Note (
                text STRING
            );

        """

    private static let production = "containers/iCloud.com.example.Art/production"
    private static let development = "containers/iCloud.com.example.Art/development"

    /// Runs `body` with a container in production, and a function that makes a server's call for
    /// alice.
    private static func inProduction(
        _ body:
            @escaping @Sendable (
                TestRelay, @Sendable (String, String) async throws -> TestRelay.Answer
            ) async throws -> Void
    ) async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(.put, production, #"{"topics":["com.example.Art"]}"#)
            let key = try await relay.admin(.post, "\(production)/keys", #"{"kind":"bearer"}"#)
            guard case .string(let secret)? = key["secret"] else {
                Issue.record("\(key.text)")
                return
            }
            try await body(relay) { path, text in
                try await relay.call(
                    .post, "/database/1/iCloud.com.example.Art/production/public/\(path)",
                    headers: ["Authorization": "Bearer \(secret)", "X-Belfry-User": "_alice"],
                    body: text)
            }
        }
    }

    private static func put(
        _ relay: TestRelay, _ path: String, text: String
    ) async throws
        -> TestRelay.Answer
    {
        try await relay.admin(
            .put, "\(path)/schema", JSONValue.object(["text": .string(text)]).text)
    }

    // MARK: Text and JSON

    @Test func `CloudKit's text and JSON are equivalent and come back unchanged`() async throws {
        try await TestRelay.with { relay in
            let imported = try await Self.put(relay, Self.development, text: Self.text)
            #expect(imported.status == 200, "\(imported.text)")
            #expect(imported["roles"] == ["Editor"])
            let text = try await relay.admin(.get, "\(Self.development)/schema?format=text")
            #expect(text["text"] == .string(Self.canonical))
            let json = try await relay.admin(.get, "\(Self.development)/schema")
            let again = try await relay.admin(.put, "\(Self.development)/schema", json.text)
            #expect(again.json == json.json, "\(again.text)")
        }
    }

    @Test(arguments: ["\r\n", "\r"])
    func `comments end with their lines whatever the line ends are`(
        lineEnd: String
    ) async throws {
        try await TestRelay.with { relay in
            let lines = Self.text.split(separator: "\n", omittingEmptySubsequences: false)
            let text = lines.joined(separator: lineEnd)
            let imported = try await Self.put(relay, Self.development, text: text)
            #expect(imported.status == 200, "\(imported.text)")
            let kept = try await relay.admin(.get, "\(Self.development)/schema?format=text")
            #expect(kept["text"] == .string(Self.canonical))
        }
    }

    @Test(
        arguments: [
            ("", "line 1: DEFINE is expected, but the text ends"),
            ("DEFINE SCHEMA\nRECORD Note", "line 2: TYPE is expected, found \"Note\""),
            ("DEFINE SCHEMA\r\nRECORD Note", "line 2: TYPE is expected, found \"Note\""),
            (
                "DEFINE SCHEMA RECORD TYPE N (\n a TEXT);",
                "line 2: one of STRING, INT64, DOUBLE, TIMESTAMP, BYTES, REFERENCE, LOCATION, "
                    + "ASSET, LIST<…> is expected, found \"TEXT\""
            ),
            (
                "DEFINE SCHEMA RECORD TYPE N (a STRING)",
                "line 1: ; is expected, but the text ends"
            ),
            ("DEFINE SCHEMA \"x", "line 1: a quotation mark is not closed"),
            (
                "DEFINE SCHEMA RECORD TYPE N (GRANT ALL TO x);",
                "line 1: READ, CREATE or WRITE is expected, found \"ALL\""
            ),
            (
                "DEFINE SCHEMA RECORD TYPE N (); RECORD TYPE N ();",
                "line 1: N is defined twice"
            ),
            (
                "DEFINE SCHEMA CREATE ROLE \"\";",
                "line 1: the name of a role is expected, found \"\""
            ),
            (
                "DEFINE SCHEMA CREATE ROLE Editor; CREATE ROLE Editor;",
                "line 1: Editor is defined twice"
            ),
        ])
    func `an invalid text is refused with its line:`(
        text: String, reason: String
    )
        async throws
    {
        try await TestRelay.with { relay in
            let answer = try await Self.put(relay, Self.development, text: text)
            #expect(answer.status == 400)
            #expect(answer["reason"] == .string("text: \(reason)"), "\(answer.text)")
        }
    }

    @Test(
        arguments: [
            (#"{"recordTypes":[],"roles":["Editor",""]}"#, "roles[1]: not \(RoleName.rule)"),
            (#"{"recordTypes":[],"roles":["a\u0000b"]}"#, "roles[0]: not \(RoleName.rule)"),
            (#"{"recordTypes":[],"roles":["\""]}"#, "roles[0]: not \(RoleName.rule)"),
            (#"{"recordTypes":[],"roles":["a","a"]}"#, "roles[1]: a is listed twice"),
            (
                #"{"recordTypes":[{"name":"N","grants":[{"permission":"READ","role":""}]}]}"#,
                "recordTypes[0].grants[0].role: not \(RoleName.rule)"
            ),
        ])
    func `an invalid schema is refused with the member, and nothing is stored`(
        body: String, reason: String
    ) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.admin(.put, "\(Self.development)/schema", body)
            #expect(answer.status == 400, "\(answer.text)")
            #expect(answer["reason"] == .string(reason), "\(answer.text)")
            let schema = try await relay.admin(.get, "\(Self.development)/schema")
            #expect(schema["roles"] == [] && schema["recordTypes"] == [], "\(schema.text)")
        }
    }

    // MARK: Development learns

    @Test func `development learns types and fields from clients and webhooks`()
        async throws
    {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            _ = try await relay.admin(
                .put, "\(Self.development)/sources/shop",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            let posted = try await relay.call(
                .post, "/changes/1/iCloud.com.example.Art/development/shop",
                body: #"{"operation":"create","recordType":"Order","recordName":"1","after":"#
                    + #"{"total":1.5,"tags":["x"],"paid":true}}"#)
            #expect(posted.status == 200, "\(posted.text)")
            let schema = try await relay.admin(.get, "\(Self.development)/schema?format=text")
            #expect(
                schema["text"]
                    == .string(
                        """
                        DEFINE SCHEMA

                            RECORD TYPE Artwork (
                                tags LIST<STRING> QUERYABLE SEARCHABLE,
                                title STRING QUERYABLE SORTABLE SEARCHABLE,
                                year INT64 QUERYABLE SORTABLE,
                                GRANT WRITE TO "_creator",
                                GRANT CREATE TO "_icloud",
                                GRANT READ TO "_world"
                            );

                            RECORD TYPE Order (
                                // paid BOOLEAN: not a type of CloudKit
                                tags LIST<STRING> QUERYABLE SEARCHABLE,
                                total DOUBLE QUERYABLE SORTABLE,
                                GRANT WRITE TO "_creator",
                                GRANT CREATE TO "_icloud",
                                GRANT READ TO "_world"
                            );

                        """), "\(schema.text)")
            let refused = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation(
                        "create", #"{"recordName":"2","recordType":"Order"}"#)))
            #expect(
                refused.json.value(at: ["records", "0", "serverErrorCode"]) == "ACCESS_DENIED")
            let kept = try await relay.admin(
                .post, "\(Self.development)/schema/recordTypes/Order", #"{"shadow":true}"#)
            #expect(kept["shadow"] == true, "\(kept.text)")
        }
    }

    @Test func `names with quotation marks inject nothing into the text of a schema`() async throws
    {
        try await TestRelay.with { relay in
            _ = try await relay.admin(
                .put, "\(Self.development)/sources/shop",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            let names: [JSONValue] = [#"A" (x STRING, GRANT WRITE TO "_world"); //"#, "Order"]
            for name in names {
                let change: JSONValue = [
                    "operation": "create", "recordType": name, "recordName": "1",
                    "after": [#"a" STRING, GRANT WRITE TO "_world", "b"#: 1, "total": 1],
                ]
                let posted = try await relay.call(
                    .post, "/changes/1/iCloud.com.example.Art/development/shop",
                    body: change.text)
                #expect(posted.status == 200, "\(posted.text)")
            }
            let schema = try await relay.admin(.get, "\(Self.development)/schema?format=text")
            guard case .string(let text)? = schema["text"] else {
                Issue.record("\(schema.text)")
                return
            }
            #expect(text.contains(#"    // RECORD TYPE "A\" (x STRING"#), "\(text)")
            #expect(text.contains(#"        // "a\" STRING, GRANT WRITE"#), "\(text)")
            let imported = try await Self.put(relay, Self.development, text: text)
            #expect(imported.status == 200, "\(imported.text)")
            #expect(imported.json.value(at: ["recordTypes", "0", "name"]) == "Order")
            #expect(imported.json.value(at: ["recordTypes", "1"]) == nil)
            #expect(!imported.text.contains(#""WRITE","role":"_world""#), "\(imported.text)")
        }
    }

    // MARK: Production refuses

    @Test func `production refuses undefined types and fields`() async throws {
        try await Self.inProduction { relay, post in
            func create(_ fields: String) async throws -> JSONValue? {
                let answer = try await post(
                    "records/modify",
                    RecordScenarioTests.body(
                        RecordScenarioTests.operation(
                            "create", RecordScenarioTests.artwork("a", fields))))
                return answer.json.value(at: ["records", "0"])
            }
            #expect(
                try await create("{}")?.value(at: ["reason"])
                    == "Cannot create new type Artwork in production schema")
            _ = try await Self.put(relay, Self.production, text: Self.text)
            #expect(
                try await create(#"{"colour":{"value":1}}"#)?.value(at: ["reason"])
                    == .string(
                        "Cannot create or modify field 'colour' in record 'Artwork' in "
                            + "production schema")
            )
            #expect(
                try await create(#"{"year":{"value":"x"}}"#)?.value(at: ["reason"])
                    == "operations[0].record.fields.year.value: Invalid value, expected type INT64."
            )
            #expect(
                try await create(#"{"year":{"value":1503}}"#)?.value(
                    at: ["fields", "year", "value"]) == 1503)
        }
    }

    @Test(
        arguments: [
            ("Painting", "title = 'x'", "NOT_FOUND"), ("Artwork", "colour = 1", "BAD_REQUEST"),
            ("Artwork", "year = 1503", "BAD_REQUEST"), ("Artwork", "title = 1503", "BAD_REQUEST"),
            ("Artwork", "title = 'x'", nil), ("Artwork", "recordName = 'x'", nil),
        ])
    func `a subscription is checked against the schema:`(
        type: String, predicate: String, code: String?
    ) async throws {
        try await Self.inProduction { relay, post in
            let body = SubscriptionScenarioTests.create(
                #"{"subscriptionID":"s","subscriptionType":"query","query":{"recordType":""#
                    + #"\#(type)","predicate":"\#(predicate)"},"firesOn":["create"]}"#)
            // Without a schema everything is accepted, because databases send what they send.
            let before = try await post("subscriptions/modify", body)
            #expect(
                before.json.value(at: ["subscriptions", "0", "serverErrorCode"]) == nil,
                "\(before.text)")
            _ = try await Self.put(relay, Self.production, text: Self.text)
            let after = try await post("subscriptions/modify", body)
            #expect(
                after.json.value(at: ["subscriptions", "0", "serverErrorCode"])
                    == code.map { .string($0) }, "\(after.text)")
        }
    }

    @Test func `grants decide who may read and create in the public database`() async throws {
        try await TestRelay.with { relay in
            _ = try await Self.put(
                relay, Self.development,
                text: """
                    DEFINE SCHEMA
                    RECORD TYPE Diary (text STRING QUERYABLE, GRANT READ TO "_creator",
                        GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
                    RECORD TYPE News (text STRING QUERYABLE, GRANT READ TO "_world");
                    """)
            func create(_ type: String) async throws -> TestRelay.Answer {
                try await relay.post(
                    "records/modify",
                    RecordScenarioTests.body(
                        RecordScenarioTests.operation(
                            "create", #"{"recordName":"r","recordType":"\#(type)"}"#)))
            }
            let news = try await create("News")
            #expect(news.json.value(at: ["records", "0", "serverErrorCode"]) == "ACCESS_DENIED")
            let diary = try await create("Diary")
            #expect(diary.json.value(at: ["records", "0", "recordName"]) == "r", "\(diary.text)")
            for (user, count) in [("_alice", 1), ("_bob", 0)] {
                let found = try await relay.post(
                    "records/query", #"{"query":{"recordType":"Diary"}}"#, user: user)
                #expect(RecordScenarioTests.names(found).count == count, "\(found.text)")
            }
        }
    }

    @Test func `record types that are kept at the same time are all in the schema`() async throws {
        try await TestRelay.with { relay in
            let names = (0..<8).map { "T\($0)" }
            try await withThrowingTaskGroup(of: Int.self) { group in
                for name in names {
                    let path = "\(Self.development)/schema/recordTypes/\(name)"
                    group.addTask {
                        try await relay.admin(.post, path, #"{"shadow":true}"#).status
                    }
                }
                for try await status in group { #expect(status == 200) }
            }
            let schema = try await relay.store.schema(of: TestRelay.container)
            #expect(names.allSatisfy { schema.recordTypes[known($0)]?.isKept == true })
        }
    }
}
