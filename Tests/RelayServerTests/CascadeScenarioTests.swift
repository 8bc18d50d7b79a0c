import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import Testing

/// The deletion of records that refer to a deleted record by `DELETE_SELF`.
@Suite struct CascadeScenarioTests {
    private static func child(_ name: String, of parent: String) -> String {
        RecordScenarioTests.operation(
            "create",
            #"{"recordName":"\#(name)","recordType":"Child","fields":{"parent":{"value":"#
                + #"{"recordName":"\#(parent)","action":"DELETE_SELF"},"type":"REFERENCE"}}}"#)
    }

    private static let deletion = RecordScenarioTests.body(
        RecordScenarioTests.operation("forceDelete", #"{"recordName":"a1"}"#))

    /// Creates the record `a1` and `count` records that refer to it.
    private static func fill(_ relay: TestRelay, _ count: Int) async throws {
        try await RecordScenarioTests.fill(relay, [1])
        let operations = (0..<count).map { child("c\($0)", of: "a1") }.joined(separator: ",")
        let saved = try await relay.post(
            "records/modify", #"{"operations":[\#(operations)]}"#)
        #expect(saved.status == 200 && !saved.text.contains("serverErrorCode"), "\(saved.text)")
    }

    @Test func `beside other containers a cascade proceeds by the container's share`() async throws
    {
        // Only the test reports what is followed, so a request that waits is refused, however soon.
        let turns = IntakeTurns(clock: ContinuousClock(), patience: .milliseconds(1))
        let other = ContainerKey(
            container: known("iCloud.com.example.Music"), environment: .development)
        try await TestRelay.with(adjusting: { $0.turns = turns }) { relay in
            try await Self.fill(relay, 20)
            let full = try await relay.store.head()
            turns.followed(upTo: full)
            _ = try await turns.run(other, changes: 1) { ((), nil) }
            let half = try await relay.post("records/modify", Self.deletion)
            let refusal = half.json.value(at: ["records", "0"])
            #expect(refusal?.value(at: ["serverErrorCode"]) == "THROTTLED", "\(half.text)")
            #expect(half.text.contains("send the same deletion again"), "\(half.text)")
            let head = try await relay.store.head()
            #expect(head.rawValue - full.rawValue == 16)
            let found = try await relay.post("records/lookup", #"{"records":["a1"]}"#)
            #expect(found.json.value(at: ["records", "0", "recordName"]) == "a1", "\(found.text)")
            #expect(found.json.value(at: ["records", "0", "serverErrorCode"]) == nil)
            turns.followed(upTo: head)
            let gone = try await relay.post("records/modify", Self.deletion)
            #expect(gone.json.value(at: ["records", "0", "deleted"]) == true, "\(gone.text)")
            let rest = try await relay.post(
                "records/query", #"{"query":{"recordType":"Child"}}"#)
            #expect(RecordScenarioTests.names(rest) == [], "\(rest.text)")
        }
    }

    @Test func `alone a cascade of any size is one request`() async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, 70)
            let gone = try await relay.post("records/modify", Self.deletion)
            #expect(gone.json.value(at: ["records", "0", "deleted"]) == true, "\(gone.text)")
            let rest = try await relay.post(
                "records/query", #"{"query":{"recordType":"Child"}}"#)
            #expect(RecordScenarioTests.names(rest) == [], "\(rest.text)")
        }
    }
}
