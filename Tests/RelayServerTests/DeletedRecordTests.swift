import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Marks of deleted records, and the tokens that are older than their removal.
@Suite struct DeletedRecordTests {
    private static func days(_ count: Int64) -> Timestamp {
        TestRelay.now.advanced(by: .seconds(count * 86_400))
    }

    private static func delete(_ name: String) -> String {
        RecordScenarioTests.body(
            RecordScenarioTests.operation("forceDelete", #"{"recordName":"\#(name)"}"#))
    }

    private static func changes(
        _ relay: TestRelay, since token: JSONValue?
    ) async throws -> TestRelay.Answer {
        let body = token.map { #"{"syncToken":\#($0.text)}"# } ?? "{}"
        return try await relay.post("records/changes", body)
    }

    @Test func `a token learns of deletions until the mark is removed, and then expires`()
        async throws
    {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1, 2])
            let before = try await Self.changes(relay, since: nil)["syncToken"]
            _ = try await relay.post("records/modify", Self.delete("a1"))
            let after = try await Self.changes(relay, since: before)["syncToken"]
            let early = try await relay.store.prune(Retention(), at: Self.days(89))
            #expect(early.marks == 0)
            let told = try await Self.changes(relay, since: before)
            #expect(RecordScenarioTests.names(told) == ["a1"], "\(told.text)")
            #expect(told.json.value(at: ["records", "0", "deleted"]) == true)

            #expect(try await relay.store.prune(Retention(), at: Self.days(91)).marks == 1)
            let expired = try await Self.changes(relay, since: before)
            #expect(expired.status == 400, "\(expired.text)")
            #expect(expired["serverErrorCode"] == "BAD_REQUEST")
            #expect(expired["changeTokenExpired"] == true)
            let anew = try await Self.changes(relay, since: nil)
            #expect(RecordScenarioTests.names(anew) == ["a2"], "\(anew.text)")
            let younger = try await Self.changes(relay, since: after)
            #expect(younger["records"] == [], "\(younger.text)")
            let zones = try await relay.post(
                "changes/zone",
                #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"},"#
                    + #""syncToken":\#(before?.text ?? "")}]}"#)
            #expect(zones.json.value(at: ["zones", "0", "changeTokenExpired"]) == true)
        }
    }

    @Test func `a client that starts anew reaches the end despite removed marks`() async throws {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1, 2, 3, 4])
            _ = try await relay.post("records/modify", Self.delete("a4"))
            #expect(try await relay.store.prune(Retention(), at: Self.days(91)).marks == 1)
            // The removed mark has a higher position than all that is left, so each page's
            // token is older than it.
            var names: [String] = []
            var token: JSONValue?
            for _ in 1...3 {
                let since = token.map { #","syncToken":\#($0.text)"# } ?? ""
                let page = try await relay.post(
                    "records/changes", #"{"resultsLimit":1\#(since)}"#)
                #expect(page.status == 200, "\(page.text)")
                names += RecordScenarioTests.names(page)
                token = page["syncToken"]
            }
            #expect(names == ["a1", "a2", "a3"])
            let nothing = try await Self.changes(relay, since: token)
            #expect(nothing["records"] == [], "\(nothing.text)")
            // The zone's own token works too.
            let zones = try await relay.post("zones/list", "{}")
            let listed = try await Self.changes(
                relay, since: zones.json.value(at: ["zones", "0", "syncToken"]))
            #expect(listed["records"] == [], "\(listed.text)")
            // The next mark that is removed does expire the token.
            _ = try await relay.post("records/modify", Self.delete("a1"))
            #expect(try await relay.store.prune(Retention(), at: Self.days(182)).marks == 1)
            let expired = try await Self.changes(relay, since: token)
            #expect(expired["changeTokenExpired"] == true, "\(expired.text)")
        }
    }

    @Test func `a client starts anew when a record type is no longer kept`() async throws {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1, 2])
            let before = try await Self.changes(relay, since: nil)["syncToken"]
            func changedZones(_ token: JSONValue?) async throws -> TestRelay.Answer {
                try await relay.post(
                    "changes/database", token.map { #"{"syncToken":\#($0.text)}"# } ?? "{}")
            }
            let ofZones = try await changedZones(nil)["syncToken"]
            #expect(try await changedZones(ofZones)["zones"] == [])
            for isKept in [false, true] {
                var schema = try await relay.store.schema(of: TestRelay.container)
                schema.recordTypes[known("Artwork")]?.isKept = isKept
                try await relay.store.replaceSchema(
                    of: TestRelay.container, with: schema, at: TestRelay.now)
                // The list of changed zones must contain the zone, or clients would not ask for its
                // records.
                let zones = try await changedZones(ofZones)
                #expect(zones.text.contains("_defaultZone"), "\(zones.text)")
                let expired = try await Self.changes(relay, since: before)
                #expect(expired["changeTokenExpired"] == true, "\(expired.text)")
            }
            try await RecordScenarioTests.fill(relay, [3])
            let anew = try await Self.changes(relay, since: nil)
            #expect(RecordScenarioTests.names(anew) == ["a3"], "\(anew.text)")
            let rest = try await Self.changes(relay, since: anew["syncToken"])
            #expect(rest["records"] == [], "\(rest.text)")
        }
    }

    @Test func `a deleted zone is known until its mark is removed, and then tokens expire`()
        async throws
    {
        try await TestRelay.with { relay in
            func post(_ path: String, _ body: String) async throws -> TestRelay.Answer {
                try await relay.post(path, body, database: "private")
            }
            func modify(_ operation: String, _ zone: String) async throws {
                let answer = try await post(
                    "zones/modify",
                    #"{"operations":[{"operationType":"\#(operation)","#
                        + #""zone":{"zoneID":{"zoneName":"\#(zone)"}}}]}"#)
                #expect(!answer.text.contains("serverErrorCode"), "\(answer.text)")
            }
            func changes(_ token: JSONValue?) async throws -> TestRelay.Answer {
                try await post(
                    "changes/database", token.map { #"{"syncToken":\#($0.text)}"# } ?? "{}")
            }
            func records(_ token: JSONValue?) async throws -> TestRelay.Answer {
                let since = token.map { #","syncToken":\#($0.text)"# } ?? ""
                return try await post(
                    "records/changes", #"{"zoneID":{"zoneName":"old"}\#(since)}"#)
            }
            func zones() async throws -> Int {
                let use = try await relay.store.quotaUse(of: TestRelay.container)
                return use.amounts[.zones] ?? 0
            }
            for zone in ["old", "kept"] { try await modify("create", zone) }
            _ = try await post(
                "records/modify",
                #"{"operations":[{"operationType":"create","record":{"recordName":"r1","#
                    + #""recordType":"Note","fields":{"text":{"value":"x"}}}}],"#
                    + #""zoneID":{"zoneName":"old"}}"#)
            let before = try await changes(nil)["syncToken"]
            let ofZone = try await records(nil)["syncToken"]
            let count = try await zones()
            try await modify("delete", "old")
            let after = try await changes(before)["syncToken"]
            #expect(try await zones() == count)
            #expect(try await relay.store.prune(Retention(), at: Self.days(89)).marks == 0)
            #expect(try await changes(before).text.contains(#""deleted":true"#))

            // The marks of the record and of the zone are removed.
            #expect(try await relay.store.prune(Retention(), at: Self.days(91)).marks == 2)
            #expect(try await zones() == count - 1)
            let expired = try await changes(before)
            #expect(expired.status == 400 && expired["changeTokenExpired"] == true)
            #expect(try await changes(after)["zones"] == [])
            #expect(try await !changes(nil).text.contains("old"))

            // Edit numbers are not reused, and the zone that is created again is not the former
            // one.
            try await modify("create", "old")
            #expect(try await changes(after).text.contains("old"))
            let stale = try await records(ofZone)
            #expect(stale["changeTokenExpired"] == true, "\(stale.text)")
            #expect(try await records(nil)["records"] == [])
        }
    }

    @Test func `marks of deleted records can be kept for ever`() async throws {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            _ = try await relay.post("records/modify", Self.delete("a1"))
            var retention = Retention()
            retention.deletedAge = nil
            #expect(try await relay.store.prune(retention, at: Self.days(9999)).marks == 0)
        }
    }

    @Test func `marks of clients' records are kept when other records' versions are forgotten`()
        async throws
    {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            var retention = Retention()
            retention.shadowAge = .seconds(1)
            retention.logAge = nil
            #expect(try await relay.store.prune(retention, at: Self.days(1)).shadows == 0)
            let found = try await relay.post(
                "records/lookup", #"{"records":[{"recordName":"a1"}]}"#)
            #expect(RecordScenarioTests.names(found) == ["a1"], "\(found.text)")
        }
    }
}
