import HTTPTypes
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// For a user who may not read a record, the record does not exist.
@Suite struct HiddenRecordTests {
    private static func keepPrivate(_ relay: TestRelay) async throws {
        let schema = """
            {"recordTypes": [
                {"name": "Artwork", "shadow": true,
                 "fields": [{"name": "title", "type": "STRING", "queryable": true},
                            {"name": "link", "type": "REFERENCE"}],
                 "grants": [{"permission": "READ", "role": "_creator"},
                            {"permission": "CREATE", "role": "_icloud"},
                            {"permission": "WRITE", "role": "_creator"}]}]}
            """
        let path = "containers/iCloud.com.example.Art/development/schema"
        #expect(try await relay.admin(.put, path, schema).status == 200)
        let made = try await relay.post(
            "records/modify",
            RecordScenarioTests.body(
                RecordScenarioTests.operation(
                    "create", RecordScenarioTests.artwork("hidden-1", #"{"title":{"value":"x"}}"#)))
        )
        #expect(!made.text.contains("serverErrorCode"), "\(made.text)")
    }

    /// Returns bob's answer about a record, without the record's name.
    private static func answer(
        _ relay: TestRelay, _ operation: String, _ name: String, tag: String?, type: String?,
        _ fields: String
    ) async throws -> String {
        var record = #""recordName":"\#(name)""#
        if let type { record += #","recordType":"\#(type)""# }
        if let tag { record += #","recordChangeTag":"\#(tag)""# }
        if !operation.lowercased().contains("delete") { record += #","fields":\#(fields)"# }
        let answer = try await relay.post(
            "records/modify",
            RecordScenarioTests.body(RecordScenarioTests.operation(operation, "{\(record)}")),
            user: "_bob")
        guard case .object(var object)? = answer.json.value(at: ["records", "0"]) else {
            return answer.text
        }
        object["uuid"] = nil
        return JSONValue.object(object).text.replacing(name, with: "NAME")
    }

    @Test func `operations on a hidden record are answered as if it did not exist`() async throws {
        try await TestRelay.with { relay in
            try await Self.keepPrivate(relay)
            for operation in ["update", "replace", "delete", "forceDelete"] {
                for tag in [nil, "zz", "1"] {
                    for type in [nil, "Artwork", "Other"] {
                        for fields in ["{}", #"{"title":{"value":1,"type":"INT64"}}"#] {
                            let there = try await Self.answer(
                                relay, operation, "hidden-1", tag: tag, type: type, fields)
                            let missing = try await Self.answer(
                                relay, operation, "absent-1", tag: tag, type: type, fields)
                            #expect(there == missing, "\(operation) \(tag ?? "") \(type ?? "")")
                        }
                    }
                }
            }
            let own = try await relay.post("records/lookup", #"{"records":["hidden-1"]}"#)
            #expect(RecordScenarioTests.names(own) == ["hidden-1"])
        }
    }

    @Test func `a reference does not reveal whether a hidden record exists`() async throws {
        try await TestRelay.with { relay in
            try await Self.keepPrivate(relay)
            for target in ["hidden-1", "absent-1"] {
                let link = #"{"value":{"recordName":"\#(target)","action":"VALIDATE"},"#
                let answer = try await relay.post(
                    "records/modify",
                    RecordScenarioTests.body(
                        RecordScenarioTests.operation(
                            "create",
                            RecordScenarioTests.artwork(
                                "b-\(target)", #"{"link":\#(link)"type":"REFERENCE"}}"#))),
                    user: "_bob")
                #expect(
                    answer.json.value(at: ["records", "0", "serverErrorCode"])
                        == "VALIDATING_REFERENCE_ERROR", "\(answer.text)")
            }
        }
    }

    @Test func `a user who may write but not read a record sees what was written`() async throws {
        try await TestRelay.with { relay in
            try await Self.keepPrivate(relay)
            var schema = try await relay.store.schema(of: TestRelay.container)
            schema.recordTypes[known("Artwork")]?.grants.append(RecordGrant(.write, to: .icloud))
            try await relay.store.replaceSchema(
                of: TestRelay.container, with: schema, at: Fixtures.moment)
            let answer = try await Self.answer(
                relay, "forceUpdate", "hidden-1", tag: nil, type: "Artwork",
                #"{"link":{"value":{"recordName":"x"},"type":"REFERENCE"}}"#)
            #expect(answer.contains("link"))
            #expect(!answer.contains("title"), "\(answer)")
        }
    }

    /// TalkToCloud writes these operations where CloudKit asks for no change tag.
    @Test func `a forced deletion uses the name and the rights of the record's own type`()
        async throws
    {
        try await TestRelay.with { relay in
            func modify(
                _ operation: String, _ record: String, by user: String
            ) async throws -> TestRelay.Answer {
                try await relay.post(
                    "records/modify",
                    RecordScenarioTests.body(RecordScenarioTests.operation(operation, record)),
                    user: user)
            }
            _ = try await modify(
                "create", RecordScenarioTests.artwork("d1", "{}"), by: "_alice")
            _ = try await modify(
                "create", #"{"recordName":"o1","recordType":"Open","fields":{}}"#, by: "_alice")
            var schema = try await relay.store.schema(of: TestRelay.container)
            schema.recordTypes[known("Open")]?.grants.append(RecordGrant(.write, to: .icloud))
            try await relay.store.replaceSchema(
                of: TestRelay.container, with: schema, at: Fixtures.moment)
            let named = try await modify(
                "delete", #"{"recordName":"d1","recordType":"Open"}"#, by: "_alice")
            #expect(
                named.json.value(at: ["records", "0", "serverErrorCode"]) == "BAD_REQUEST",
                "\(named.text)")
            let refused = try await modify(
                "forceDelete", #"{"recordName":"d1","recordType":"Open"}"#, by: "_bob")
            #expect(
                refused.json.value(at: ["records", "0", "serverErrorCode"]) == "ACCESS_DENIED",
                "\(refused.text)")
            let words = "Forced - does not matter"
            for (name, user) in [("d1", "_alice"), ("o1", "_bob")] {
                let deleted = try await modify(
                    "forceDelete",
                    #"{"recordName":"\#(name)","recordType":"\#(words)","#
                        + #""recordChangeTag":"\#(words)","fields":{}}"#, by: user)
                #expect(
                    deleted.json.value(at: ["records", "0", "deleted"]) == true,
                    "\(deleted.text)")
            }
            let found = try await relay.post("records/lookup", #"{"records":["d1","o1"]}"#)
            for place in ["0", "1"] {
                #expect(
                    found.json.value(at: ["records", place, "serverErrorCode"]) == "NOT_FOUND",
                    "\(found.text)")
            }
        }
    }

    @Test func `a user who may write others' records deletes them by name alone`() async throws {
        try await TestRelay.with { relay in
            func create(_ name: String) async throws {
                _ = try await relay.post(
                    "records/modify",
                    RecordScenarioTests.body(
                        RecordScenarioTests.operation(
                            "create", RecordScenarioTests.artwork(name, "{}"))))
            }
            func delete(_ operation: String, _ name: String) async throws -> TestRelay.Answer {
                try await relay.post(
                    "records/modify",
                    RecordScenarioTests.body(
                        RecordScenarioTests.operation(operation, #"{"recordName":"\#(name)"}"#)),
                    user: "_bob")
            }
            for name in ["d1", "d2"] { try await create(name) }
            let refused = try await delete("forceDelete", "d1")
            #expect(
                refused.json.value(at: ["records", "0", "serverErrorCode"]) == "ACCESS_DENIED",
                "\(refused.text)")
            var schema = try await relay.store.schema(of: TestRelay.container)
            schema.recordTypes[known("Artwork")]?.grants.append(RecordGrant(.write, to: .icloud))
            try await relay.store.replaceSchema(
                of: TestRelay.container, with: schema, at: Fixtures.moment)
            for (operation, name) in [("forceDelete", "d1"), ("delete", "d2")] {
                let deleted = try await delete(operation, name)
                #expect(
                    deleted.json.value(at: ["records", "0", "deleted"]) == true,
                    "\(deleted.text)")
            }
        }
    }

    @Test func `names of system fields are reserved`() async throws {
        try await TestRelay.with { relay in
            let names =
                SystemField.allCases.flatMap(\.names).filter { !$0.hasPrefix("_") }
                + ["recordType", "recordChangeTag"]
            for name in names {
                for operation in ["create", "forceUpdate", "forceReplace"] {
                    let answer = try await Self.answer(
                        relay, operation, "sys-1", tag: nil, type: "Artwork",
                        #"{"\#(name)":{"value":"_alice"}}"#)
                    #expect(answer.contains("BAD_REQUEST"), "\(name) \(answer)")
                    #expect(answer.contains("is reserved for a system field"), "\(answer)")
                }
            }
        }
    }
}
