import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import Testing

/// Records that CloudKit clients create, change, look up and delete.
@Suite struct RecordScenarioTests {
    static func operation(_ type: String, _ record: String) -> String {
        #"{"operationType":"\#(type)","record":\#(record)}"#
    }

    static func body(_ operations: String..., adding members: String = "") -> String {
        #"{"operations":[\#(operations.joined(separator: ","))]\#(members)}"#
    }

    static func artwork(_ name: String, _ fields: String, tag: String? = nil) -> String {
        let tag = tag.map { #","recordChangeTag":"\#($0)""# } ?? ""
        return #"{"recordName":"\#(name)","recordType":"Artwork","fields":\#(fields)\#(tag)}"#
    }

    /// Creates artworks with a title and a year.
    static func fill(
        _ relay: TestRelay, _ years: [Int], database: String = "public"
    ) async throws {
        let operations = years.map {
            operation(
                "create",
                artwork(
                    "a\($0)",
                    #"{"title":{"value":"Work \#($0)"},"year":{"value":\#($0),"type":"INT64"},"#
                        + #""tags":{"value":["t"],"type":"STRING_LIST"}}"#))
        }
        let answer = try await relay.post(
            "records/modify", #"{"operations":[\#(operations.joined(separator: ","))]}"#,
            database: database)
        #expect(!answer.text.contains("serverErrorCode"), "\(answer.text)")
    }

    static func names(_ answer: TestRelay.Answer) -> [String] {
        guard case .array(let records)? = answer["records"] else { return [] }
        return records.compactMap { record in
            if case .string(let name)? = record.value(at: ["recordName"]) { name } else { nil }
        }
    }

    // MARK: modify and lookup

    @Test func `a record is created, updated by its tag, looked up and deleted`() async throws {
        try await TestRelay.with { relay in
            let created = try await relay.post(
                "records/modify",
                Self.body(
                    Self.operation(
                        "create",
                        Self.artwork(
                            "m",
                            #"{"title":{"value":"Mona","type":"STRING"},"year":{"value":1503}}"#))))
            #expect(created.status == 200, "\(created.text)")
            let record = created.json.value(at: ["records", "0"])
            #expect(record?.value(at: ["fields", "title"]) == ["value": "Mona", "type": "STRING"])
            #expect(record?.value(at: ["fields", "year", "type"]) == "INT64")
            #expect(record?.value(at: ["created", "userRecordName"]) == "_alice")
            #expect(record?.value(at: ["deleted"]) == false)
            #expect(record?.value(at: ["zoneID", "zoneName"]) == "_defaultZone")
            guard case .string(let tag)? = record?.value(at: ["recordChangeTag"]) else {
                Issue.record("\(created.text)")
                return
            }

            let updated = try await relay.post(
                "records/modify",
                Self.body(
                    Self.operation(
                        "update", Self.artwork("m", #"{"year":{"value":1504}}"#, tag: tag))))
            let fields = updated.json.value(at: ["records", "0", "fields"])
            #expect(fields?.value(at: ["title", "value"]) == "Mona", "\(updated.text)")
            #expect(fields?.value(at: ["year", "value"]) == 1504)
            #expect(updated.json.value(at: ["records", "0", "recordChangeTag"]) != .string(tag))

            let stale = try await relay.post(
                "records/modify",
                Self.body(
                    Self.operation(
                        "update", Self.artwork("m", #"{"year":{"value":1}}"#, tag: tag))))
            let conflict = stale.json.value(at: ["records", "0"])
            #expect(stale.status == 200)
            #expect(conflict?.value(at: ["serverErrorCode"]) == "CONFLICT")
            #expect(conflict?.value(at: ["serverRecord", "fields", "year", "value"]) == 1504)

            let found = try await relay.post(
                "records/lookup", #"{"records":[{"recordName":"m"},"nobody"]}"#)
            #expect(found.json.value(at: ["records", "0", "fields", "year", "value"]) == 1504)
            #expect(found.json.value(at: ["records", "1", "serverErrorCode"]) == "NOT_FOUND")

            let deleted = try await relay.post(
                "records/modify",
                Self.body(Self.operation("delete", #"{"recordName":"m"}"#)))
            #expect(deleted.json.value(at: ["records", "0", "deleted"]) == true)
            let gone = try await relay.post("records/lookup", #"{"records":["m"]}"#)
            #expect(gone.json.value(at: ["records", "0", "serverErrorCode"]) == "NOT_FOUND")
        }
    }

    /// An operation on the record `m`, which has `title` and `year`, and its outcome.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var operation: String
        var code: String?
        var fields: JSONValue?
    }

    static let cases = [
        Case(
            testDescription: "a second creation",
            operation: operation("create", artwork("m", "{}")), code: "EXISTS"),
        Case(
            testDescription: "an update without a tag",
            operation: operation("update", artwork("m", "{}")), code: "BAD_REQUEST"),
        Case(
            testDescription: "an update of nothing",
            operation: operation("update", artwork("x", "{}", tag: "1")), code: "NOT_FOUND"),
        Case(
            testDescription: "forceUpdate keeps other fields",
            operation: operation("forceUpdate", artwork("m", #"{"title":{"value":"L"}}"#)),
            fields: [
                "title": ["value": "L", "type": "STRING"], "year": ["value": 1, "type": "INT64"],
            ]),
        Case(
            testDescription: "null removes a field",
            operation: operation("forceUpdate", artwork("m", #"{"title":{"value":null}}"#)),
            fields: ["year": ["value": 1, "type": "INT64"]]),
        Case(
            testDescription: "forceReplace drops other fields",
            operation: operation("forceReplace", artwork("m", #"{"title":{"value":"L"}}"#)),
            fields: ["title": ["value": "L", "type": "STRING"]]),
        Case(
            testDescription: "forceUpdate creates",
            operation: operation("forceUpdate", artwork("n", #"{"title":{"value":"N"}}"#)),
            fields: ["title": ["value": "N", "type": "STRING"]]),
        Case(
            testDescription: "a delete of nothing",
            operation: operation("delete", #"{"recordName":"x"}"#), code: "NOT_FOUND"),
        Case(
            testDescription: "a forced delete of nothing",
            operation: operation("forceDelete", #"{"recordName":"x"}"#)),
        Case(
            testDescription: "a delete with a stale tag",
            operation: operation("delete", #"{"recordName":"m","recordChangeTag":"zz"}"#),
            code: "CONFLICT"),
        Case(
            testDescription: "a value of another type than the field's",
            operation: operation(
                "forceUpdate", artwork("m", #"{"year":{"value":"x","type":"STRING"}}"#)),
            code: "BAD_REQUEST"),
        Case(
            testDescription: "a timestamp with a fraction",
            operation: operation(
                "forceUpdate", artwork("m", #"{"at":{"value":1.5,"type":"TIMESTAMP"}}"#)),
            code: "BAD_REQUEST"),
        Case(
            testDescription: "a zone that is not there",
            operation: operation(
                "forceUpdate",
                #"{"recordName":"m","recordType":"Artwork","zoneID":{"zoneName":"z"}}"#),
            code: "ZONE_NOT_FOUND"),
        Case(
            testDescription: "an unknown operation", operation: operation("upsert", "{}"),
            code: "BAD_REQUEST"),
    ]

    @Test(arguments: cases) func `operations:`(_ one: Case) async throws {
        try await TestRelay.with { relay in
            _ = try await relay.post(
                "records/modify",
                Self.body(
                    Self.operation(
                        "create",
                        Self.artwork("m", #"{"title":{"value":"M"},"year":{"value":1}}"#))))
            let answer = try await relay.post("records/modify", Self.body(one.operation))
            #expect(answer.status == 200, "\(answer.text)")
            let entry = answer.json.value(at: ["records", "0"])
            let code = entry?.value(at: ["serverErrorCode"])
            #expect(code == one.code.map { .string($0) }, "\(answer.text)")
            if one.code != nil { #expect(entry?.value(at: ["uuid"]) != nil) }
            if let fields = one.fields { #expect(entry?.value(at: ["fields"]) == fields) }
        }
    }

    @Test func `an atomic request is applied as a whole or not at all`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post(
                "records/modify",
                Self.body(
                    Self.operation("create", Self.artwork("a", "{}")),
                    Self.operation("update", Self.artwork("b", "{}", tag: "1")),
                    adding: #","atomic":true"#))
            #expect(answer.json.value(at: ["records", "0", "serverErrorCode"]) == "ATOMIC_ERROR")
            #expect(answer.json.value(at: ["records", "1", "serverErrorCode"]) == "NOT_FOUND")
            let found = try await relay.post("records/lookup", #"{"records":["a"]}"#)
            #expect(found.json.value(at: ["records", "0", "serverErrorCode"]) == "NOT_FOUND")
        }
    }

    @Test func `members of CloudKit's values that the relay does not use come back`() async throws {
        let fields =
            #"{"owner":{"value":{"recordName":"p","action":"DELETE_SELF"},"type":"REFERENCE"},"#
            + #""place":{"value":{"latitude":1.5,"longitude":2.5,"altitude":7},"type":"LOCATION"},"#
            + #""tags":{"value":["a","b"],"type":"STRING_LIST"},"#
            + #""image":{"value":{"fileChecksum":"c","size":3,"downloadURL":"https://x/y"},"#
            + #""type":"ASSET"},"at":{"value":1700000000123,"type":"TIMESTAMP"},"#
            + #""data":{"value":"AQI=","type":"BYTES"}}"#
        try await TestRelay.with { relay in
            _ = try await relay.post(
                "records/modify",
                Self.body(Self.operation("create", Self.artwork("m", fields))))
            let found = try await relay.post("records/lookup", #"{"records":["m"]}"#)
            let read = found.json.value(at: ["records", "0", "fields"])
            #expect(
                read?.value(at: ["owner", "value", "action"]) == "DELETE_SELF", "\(found.text)")
            #expect(read?.value(at: ["place", "value", "altitude"]) == 7)
            #expect(read?.value(at: ["tags"]) == ["value": ["a", "b"], "type": "STRING_LIST"])
            #expect(read?.value(at: ["image", "type"]) == "ASSETID")
            #expect(read?.value(at: ["image", "value", "downloadURL"]) == "https://x/y")
            #expect(read?.value(at: ["at", "value"]) == 1_700_000_000_123)
            #expect(read?.value(at: ["data"]) == ["value": "AQI=", "type": "BYTES"])
            let strings = try await relay.post(
                "records/lookup",
                #"{"records":["m"],"numbersAsStrings":true,"desiredKeys":["at"]}"#)
            #expect(
                strings.json.value(at: ["records", "0", "fields"])
                    == ["at": ["value": "1700000000123", "type": "TIMESTAMP"]])
        }
    }

    // MARK: Who may

    @Test func `in the public database records are written by creators and servers`()
        async throws
    {
        try await TestRelay.with { relay in
            try await Self.fill(relay, [1])
            let change = Self.body(
                Self.operation("forceUpdate", Self.artwork("a1", #"{"year":{"value":2}}"#)))
            let bob = try await relay.post("records/modify", change, user: "_bob")
            #expect(
                bob.json.value(at: ["records", "0", "serverErrorCode"]) == "ACCESS_DENIED",
                "\(bob.text)")
            let nobody = try await relay.call(
                .post,
                TestRelay.path + "/public/records/modify?ckAPIToken=\(TestRelay.apiToken)"
                    + "&ckWebAuthToken=null",
                body: Self.body(Self.operation("create", Self.artwork("n", "{}"))))
            #expect(nobody.status == 421)
            #expect(nobody["serverErrorCode"] == "AUTHENTICATION_REQUIRED", "\(nobody.text)")
            #expect(nobody["redirectURL"] != nil)
            let server = try await relay.call(
                .post, TestRelay.path + "/public/records/modify",
                headers: ["Authorization": "Bearer \(TestRelay.bearerKey)"], body: change)
            #expect(
                server.json.value(at: ["records", "0", "fields", "year", "value"]) == 2,
                "\(server.text)")
        }
    }

    @Test func `private databases are separate`() async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, [1], database: "private")
            for user in ["_alice", "_bob"] {
                let found = try await relay.post(
                    "records/query", #"{"query":{"recordType":"Artwork"}}"#, user: user,
                    database: "private")
                #expect(Self.names(found) == (user == "_alice" ? ["a1"] : []), "\(found.text)")
            }
            let open = try await relay.post(
                "records/query", #"{"query":{"recordType":"Artwork"}}"#)
            #expect(Self.names(open) == [])
        }
    }

    // MARK: query

    struct Query: Sendable, CustomTestStringConvertible {
        var testDescription: String { body }
        var body: String
        var names: [String]
    }

    static let queries = [
        Query(body: #"{"recordType":"Artwork"}"#, names: ["a1", "a2", "a3", "a4", "a5"]),
        Query(
            body: #"{"recordType":"Artwork","filterBy":[{"comparator":"GREATER_THAN","fieldName":"#
                + #""year","fieldValue":{"value":3,"type":"INT64"}}]}"#, names: ["a4", "a5"]),
        Query(
            body: #"{"recordType":"Artwork","filterBy":{"comparator":"IN","fieldName":"year","#
                + #""fieldValue":{"value":[1,5],"type":"INT64_LIST"}},"sortBy":[{"fieldName":"#
                + #""year","ascending":false}]}"#, names: ["a5", "a1"]),
        Query(
            body: #"{"recordType":"Artwork","predicate":"title ENDSWITH '2' OR year = 4"}"#,
            names: ["a2", "a4"]),
        Query(body: #"{"recordType":"Artwork","rql":"year < 2"}"#, names: ["a1"]),
        Query(body: #"{"recordType":"Artwork","where":{"year":{"$eq":3}}}"#, names: ["a3"]),
        Query(
            body: #"{"recordType":"Artwork","predicate":"recordName == 'a3'"}"#, names: ["a3"]),
        // Milliseconds without a type: the schema knows that the field is a timestamp.
        Query(
            body: #"{"recordType":"Artwork","filterBy":[{"comparator":"GREATER_THAN","#
                + #""systemFieldName":"createdTimestamp","fieldValue":{"value":4000000000000}}]}"#,
            names: []),
        Query(
            body: #"{"recordType":"Artwork","filterBy":[{"comparator":"LESS_THAN","fieldName":"#
                + #""___createTime","fieldValue":{"value":4000000000000}},{"comparator":"#
                + #""LIST_CONTAINS","fieldName":"tags","fieldValue":{"value":"x"}}]}"#, names: []),
    ]

    @Test(arguments: queries) func `queries:`(_ query: Query) async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, [1, 2, 3, 4, 5])
            let whole = try await relay.post("records/query", #"{"query":\#(query.body)}"#)
            #expect(Self.names(whole) == query.names, "\(whole.text)")
            #expect(whole["continuationMarker"] == nil)
            // The same query in pages of two.
            var pages: [String] = []
            var marker = ""
            for _ in 0..<10 {
                let page = try await relay.post(
                    "records/query", #"{"query":\#(query.body),"resultsLimit":2\#(marker)}"#)
                pages += Self.names(page)
                guard case .string(let next)? = page["continuationMarker"] else { break }
                marker = #","continuationMarker":"\#(next)""#
            }
            #expect(pages == query.names)
        }
    }

    @Test(
        arguments: [
            (#"{"query":{"recordType":"Unknown"}}"#, 404, "NOT_FOUND"),
            (#"{"query":{"recordType":"Artwork","predicate":"colour = 1"}}"#, 400, "BAD_REQUEST"),
            (
                #"{"query":{"recordType":"Artwork","sortBy":[{"fieldName":"colour"}]}}"#, 400,
                "BAD_REQUEST"
            ),
            (#"{"query":{"recordType":"Artwork"},"resultsLimit":0}"#, 400, "BAD_REQUEST"),
            (
                #"{"query":{"recordType":"Artwork"},"continuationMarker":"AAAA"}"#, 400,
                "BAD_REQUEST"
            ),
            (
                #"{"query":{"recordType":"Artwork"},"zoneID":{"zoneName":"z"}}"#, 404,
                "ZONE_NOT_FOUND"
            ),
            (#"{}"#, 400, "BAD_REQUEST"),
        ])
    func `queries that are refused:`(body: String, status: Int, code: String) async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, [1])
            let answer = try await relay.post("records/query", body)
            #expect(answer.status == status, "\(answer.text)")
            #expect(answer["serverErrorCode"] == .string(code))
        }
    }
}
