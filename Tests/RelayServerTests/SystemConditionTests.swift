import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Conditions that are accepted can fire.
///
/// They may use what the relay knows of every record, and fields whose types the schema defines.
@Suite(.timeLimit(.minutes(30))) struct SystemConditionTests {
    private static let schema = """
        DEFINE SCHEMA
        RECORD TYPE Written (
            flag INT64 QUERYABLE, flags LIST<INT64> QUERYABLE, other STRING QUERYABLE,
            artist REFERENCE QUERYABLE, tags LIST<STRING> QUERYABLE, GRANT READ TO "_world"
        );
        """

    /// Saves a subscription, and returns the reason if it is refused.
    private static func refusal(
        _ relay: TestRelay, _ query: String, type: String = "Artwork",
        members: String = #""firesOn":["create","update"]"#
    ) async throws -> String? {
        let answer = try await relay.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionType":"query","#
                + #"\#(members),"query":{"recordType":"\#(type)",\#(query)}}}]}"#)
        guard case .string(let reason)? = answer.json.value(at: ["subscriptions", "0", "reason"])
        else { return nil }
        return reason
    }

    @Test(arguments: [
        #""predicate":"creationDate > 1000""#, #""predicate":"creationDate > '2020-01-01'""#,
        #""predicate":"___createTime > now() - 10000""#, #""predicate":"recordName == 5""#,
        #""where":{"creationDate":{"$gt":1000}}"#, #""rql":"creationDate > 1000""#,
        #""predicate":"ANY recordName == 'x'""#, #""predicate":"recordName.foo == 'x'""#,
        #""predicate":"NOT (artist == 'x' OR modifiedTimestamp == 'x')""#,
        #""predicate":"creatorUserRecordID.zoneID == 'x'""#,
        #""rql":"creatorUserRecordID.zoneID == 'x'""#, #""rql":"recordName == 5""#,
        #""rql":"artist == 'x' AND ANY recordName == 'x'""#, #""predicate":"recordID == 5""#,
        #""predicate":"SUBQUERY(items, $x, creationDate == 5).@count > 0""#,
        #""filterBy":[{"fieldName":"createdTimestamp","comparator":"EQUALS","fieldValue":{"#
            + #""value":"x","type":"STRING"}}]"#,
    ])
    func `a system field compared with another type is refused even for unknown types`(
        query: String
    ) async throws {
        try await TestRelay.with { relay in
            try await relay.define(Self.schema)
            for type in ["Artwork", "Written"] {
                let reason = try await Self.refusal(
                    relay, query.replacing("artist", with: "other"), type: type)
                #expect(reason != nil, "\(type): \(query)")
            }
        }
    }

    /// Conditions that mean the record `r1`, or alice who created it.
    private static let meant: [String] = [
        #""predicate":"recordID == 'r1'""#, #""predicate":"___recordID IN {'r1', 'r2'}""#,
        #""predicate":"'r1' == recordID""#, #""predicate":"recordID BEGINSWITH 'r'""#,
        #""predicate":"SELF['recordID'] == 'r1'""#,
        #""predicate":"SELF['createdUserRecordName'] == 'alice'""#,
        #""predicate":"creatorUserRecordID == 'alice'""#,
        #""predicate":"___createdBy IN {'alice'}""#, #""rql":"creatorUserRecordID == 'alice'""#,
        #""predicate":"creatorUserRecordID BEGINSWITH[c] 'AL'""#,
        #""where":{"creatorUserRecordID":{"$eq":"alice"}}"#,
        #""predicate":"lastModifiedUserRecordID == 'alice'""#,
        #""predicate":"createdUserRecordName == %@","predicateArguments":[{"recordName":"alice"}]"#,
        #""predicate":"createdUserRecordName IN %@","predicateArguments":[[{"recordName":"alice"}]]"#,
        #""rql":"createdUserRecordName == $0","rqlArguments":[{"recordName":"alice"}]"#,
        #""predicate":"recordName == %@","predicateArguments":[{"recordName":"r1"}]"#,
        #""predicate":"creatorUserRecordID.recordName == 'alice'""#,
        #""filterBy":[{"fieldName":"___recordID","comparator":"EQUALS","fieldValue":{"value":"r1"}}]"#,
        #""filterBy":[{"fieldName":"___createdBy","comparator":"IN","fieldValue":{"value":["alice"]}}]"#,
    ]

    @Test func `a record or user matches as a string and as a reference`() async throws {
        try await RunningRelay.with { relay in
            for (index, member) in Self.meant.enumerated() {
                guard case .object(var query) = try JSONValue(parsing: "{\(member)}") else {
                    return
                }
                query["recordType"] = "Artwork"
                // Each condition is saved for another user, because equal conditions are
                // duplicates.
                let user = "user\(index)"
                try await relay.container.register(SampleDevice(name: "d\(index)", owner: user))
                try await relay.container.save(
                    [
                        "subscriptionID": "q", "subscriptionType": "query",
                        "query": .object(query), "firesOn": ["create"],
                        "notificationInfo": ["alertBody": "New"],
                    ], as: user)
            }
            try await relay.container.post(
                .change(
                    "create", "r1", ["artist": "x"],
                    adding: ["origin": ["userRecordName": "alice"]]))
            try await relay.container.post(
                .change(
                    "create", "other", ["artist": "x"],
                    adding: ["origin": ["userRecordName": "bob"]]))
            let wanted = Self.meant.indices.map { "d\($0): qry q created r1" }
            #expect(try await relay.arrivals() == wanted.sorted())
        }
    }

    @Test func `a string finds a record in a zone of its own too`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.post(
                "zones/modify",
                #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"g"}}}]}"#,
                database: "private")
            _ = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation(
                        "create", RecordScenarioTests.artwork("r1", "{}")),
                    adding: #","zoneID":{"zoneName":"g"}"#), database: "private")
            for member in Self.meant
            where member.contains("\"r1\"") && member.contains("filterBy")
                || member.contains("'r1'")
            {
                let answer = try await relay.post(
                    "records/query",
                    #"{"zoneID":{"zoneName":"g"},"query":{"recordType":"Artwork",\#(member)}}"#,
                    database: "private")
                #expect(RecordScenarioTests.names(answer) == ["r1"], "\(member) \(answer.text)")
            }
        }
    }

    @Test func `a column named like a system field does not replace it in a query`()
        async throws
    {
        try await TestRelay.with { relay in
            let container = "containers/iCloud.com.example.Art/development"
            let kept = try await relay.admin(
                .put, container + "/schema",
                #"{"recordTypes":[{"name":"Row","shadow":true,"grants":[{"permission":"READ","#
                    + #""role":"_world"}],"fields":[{"name":"title","type":"STRING","#
                    + #""queryable":true}]}]}"#)
            #expect(kept.status == 200, "\(kept.text)")
            let source = try await relay.admin(
                .put, container + "/sources/app",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            #expect(source.status == 201, "\(source.text)")
            let posted = try await relay.call(
                .post, "/changes/1/iCloud.com.example.Art/development/app",
                body: #"[{"operation":"create","recordType":"Row","recordName":"r1","after":{"#
                    + #""title":"x","createdUserRecordName":"bob"}},{"operation":"create","#
                    + #""recordType":"Row","recordName":"r2","after":{"title":"x"},"origin":{"#
                    + #""userRecordName":"bob"}}]"#)
            #expect(posted.status == 200, "\(posted.text)")
            for name in ["createdUserRecordName", "creatorUserRecordName"] {
                let answer = try await relay.post(
                    "records/query",
                    #"{"query":{"recordType":"Row","predicate":"\#(name) == 'bob'"}}"#)
                #expect(RecordScenarioTests.names(answer) == ["r2"], "\(name) \(answer.text)")
            }
        }
    }

    @Test func `a field that was never sent is unknown to queries and subscriptions`()
        async throws
    {
        try await TestRelay.with { relay in
            let container = "containers/iCloud.com.example.Art/development"
            _ = try await relay.admin(
                .put, container + "/schema",
                #"{"recordTypes":[{"name":"Row","shadow":true,"grants":[{"permission":"READ","#
                    + #""role":"_world"}],"fields":[{"name":"a","type":"STRING","queryable":true},"#
                    + #"{"name":"b","type":"INT64","queryable":true}]}]}"#)
            _ = try await relay.admin(
                .put, container + "/sources/app",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            let posted = try await relay.call(
                .post, "/changes/1/iCloud.com.example.Art/development/app",
                body: #"[{"operation":"update","recordType":"Row","recordName":"part","after":{"#
                    + #""b":1},"afterCompleteness":"partial"},{"operation":"create","recordType":"#
                    + #""Row","recordName":"whole","after":{"b":1}}]"#)
            #expect(posted.status == 200, "\(posted.text)")
            for (condition, names) in [
                ("a == nil", ["whole"]), ("NOT a == 'x'", ["whole"]),
                ("b == 1", ["part", "whole"]), ("b == 1 OR a == 'x'", ["part", "whole"]),
            ] {
                let answer = try await relay.post(
                    "records/query",
                    #"{"query":{"recordType":"Row","predicate":"\#(condition)"}}"#)
                #expect(RecordScenarioTests.names(answer) == names, "\(condition) \(answer.text)")
            }
        }
    }

    // MARK: Written kinds

    @Test func `a boolean for a field declared as INT64 becomes a number`() async throws {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PUT", "\(relay.container.path)/schema", ["text": .string(Self.schema)]
            ).expect(200)
            func query(_ id: String, _ rql: String) -> JSONValue {
                [
                    "subscriptionID": .string(id), "subscriptionType": "query",
                    "query": ["recordType": "Written", "rql": .string(rql)],
                    "firesOn": ["create", "delete"], "notificationInfo": ["alertBody": "New"],
                ]
            }
            try await relay.container.save(
                query("one", "flag == 1"), query("zero", "flag == 0"),
                query("many", "ANY flags == 1"), as: "bob")
            for (operation, image) in [("create", "after"), ("delete", "before")] {
                for (name, fields): (String, JSONObject) in [
                    ("yes", ["flag": true]), ("no", ["flag": false]),
                    ("list", ["flags": [true, 0], "other": "x"]),
                ] {
                    try await relay.container.post([
                        "operation": .string(operation), "recordType": "Written",
                        "recordName": .string(name),
                        image == "after" ? "after" : "before": .object(fields),
                    ])
                }
            }
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals == [
                    "bobs: qry many created list", "bobs: qry many deleted list",
                    "bobs: qry one created yes", "bobs: qry one deleted yes",
                    "bobs: qry zero created no", "bobs: qry zero deleted no",
                ])
        }
    }

    @Test(arguments: [
        (#""where":{"flag":{"$eq":true}}"#, false), (#""where":{"flag":{"$eq":1}}"#, true),
        (#""where":{"artist":{"$eq":"a1"}}"#, true), (#""where":{"tags":{"$eq":"red"}}"#, true),
        (#""where":{"tags":{"$eq":5}}"#, false), (#""where":{"artist":{"$eq":5}}"#, false),
        (#""rql":"flag == true""#, false),
    ])
    func `where is checked against declared types by its own rules`(
        query: String, isSaved: Bool
    ) async throws {
        try await TestRelay.with { relay in
            try await relay.define(Self.schema)
            let reason = try await Self.refusal(relay, query, type: "Written")
            #expect((reason == nil) == isSaved, "\(query): \(reason ?? "saved")")
        }
    }

    // MARK: Arguments

    @Test func `a GeoJSON polygon is only an argument of rql`() async throws {
        let polygon =
            #"{"type":"Polygon","coordinates":[[[13,52],[14,52],[14,53],[13,53],[13,52]]]}"#
        try await RunningRelay.with { relay in
            try await relay.container.save(
                [
                    "subscriptionID": "q", "subscriptionType": "query",
                    "query": [
                        "recordType": "Artwork", "rql": "loc GEOWITHIN $0",
                        "rqlArguments": [try JSONValue(parsing: polygon)],
                    ],
                    "firesOn": ["create"], "notificationInfo": ["alertBody": "New"],
                ], as: "bob")
            for (name, latitude) in [("in", 52.5), ("out", 55)] {
                try await relay.container.post(
                    .change(
                        "create", name, ["loc": ["$geo": [.number(latitude), .number(13.5)]]]))
            }
            #expect(try await relay.arrivals() == ["bobs: qry q created in"])
        }
        try await TestRelay.with { relay in
            for query in [
                #""predicate":"artist == %@","predicateArguments":[\#(polygon)]"#,
                #""rql":"loc GEOWITHIN $0","rqlArguments":[{"type":"Point","coordinates":[1,2]}]"#,
            ] {
                let reason = try await Self.refusal(relay, query)
                #expect(reason != nil, "\(query)")
            }
        }
    }

    @Test func `a string compared with a field of references is refused`()
        async throws
    {
        try await TestRelay.with { relay in
            let made = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation(
                        "create",
                        RecordScenarioTests.artwork(
                            "a", #"{"artist":{"value":{"recordName":"a1"}}}"#))))
            #expect(!made.text.contains("serverErrorCode"), "\(made.text)")
            for (query, isSaved) in [
                (#""predicate":"artist == 'a1'""#, false),
                (#""predicate":"artist IN {'a1', 'a2'}""#, false),
                (#""rql":"artist == 'a1'""#, false),
                (#""where":{"artist":{"$eq":"a1"}}"#, true),
                (#""predicate":"artist.recordName == 'a1'""#, true),
                (#""predicate":"title == 'a1'""#, true),
            ] {
                let reason = try await Self.refusal(relay, query)
                #expect((reason == nil) == isSaved, "\(query): \(reason ?? "saved")")
            }
        }
    }

    // MARK: What never fires

    @Test(arguments: [
        "modificationDate", "lastModifiedUserRecordID", "recordName", "___createTime",
    ])
    func `a system field among the changed keys is refused`(name: String) async throws {
        try await TestRelay.with { relay in
            let reason = try await Self.refusal(
                relay, #""predicate":"price < 100""#,
                members: #""firesOn":["update"],"changedKeys":["price","\#(name)"]"#)
            #expect(
                reason?.hasPrefix("operations[0].subscription.changedKeys[1]: ") == true,
                "\(reason ?? "saved")")
        }
    }

    @Test func `a condition on what is never known is refused before its type is known`()
        async throws
    {
        try await TestRelay.with { relay in
            for (query, firesOn, isSaved) in [
                (#""predicate":"creatorUserRecordID == 'x'""#, #"["delete"]"#, false),
                (#""predicate":"creationDate > now()""#, #"["update"]"#, false),
                (#""predicate":"creationDate > now()""#, #"["create"]"#, true),
                (#""predicate":"recordName == 'x'""#, #"["delete"]"#, true),
                (#""predicate":"artist == 'x'""#, #"["delete"]"#, true),
            ] {
                let reason = try await Self.refusal(
                    relay, query, type: "Unheard", members: #""firesOn":\#(firesOn)"#)
                #expect((reason == nil) == isSaved, "\(query): \(reason ?? "saved")")
            }
        }
    }
}
