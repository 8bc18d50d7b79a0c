import RelayModel
import RelayServer
import RelayTestKit
import Storage
import Testing

/// Marks of deleted records, and the tokens that outlive them.
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

    @Test func `a token is told of what was deleted until the mark has gone, and then expires`()
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

    @Test func `marks stay for ever if that is asked for`() async throws {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            _ = try await relay.post("records/modify", Self.delete("a1"))
            var retention = Retention()
            retention.deletedAge = nil
            #expect(try await relay.store.prune(retention, at: Self.days(9999)).marks == 0)
        }
    }

    @Test func `what clients keep is not forgotten with the last versions of others' records`()
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
