import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import Testing

/// Zones, and their changes since a token.
@Suite struct ZoneScenarioTests {
    private static func zone(_ operation: String, _ name: String) -> String {
        #"{"operations":[{"operationType":"\#(operation)","zone":{"zoneID":{"zoneName":"#
            + #""\#(name)"}}}]}"#
    }

    private static func create(_ name: String, in zone: String) -> String {
        #"{"operations":[{"operationType":"create","record":{"recordName":"\#(name)","recordType":"#
            + #""Note","fields":{"text":{"value":"x"}}}}],"zoneID":{"zoneName":"\#(zone)"}}"#
    }

    private static func text(_ value: JSONValue?) -> String {
        if case .string(let text)? = value { text } else { "" }
    }

    private static func zones(_ answer: TestRelay.Answer) -> [String] {
        guard case .array(let zones)? = answer["zones"] else { return [] }
        return zones.map { text($0.value(at: ["zoneID", "zoneName"])) }
    }

    @Test func `zones of a request are deleted for at most ten seconds`() async throws {
        let turns = IntakeTurns(clock: LeapingClock())
        try await TestRelay.with(adjusting: { $0.turns = turns }) { relay in
            func post(_ body: String) async throws -> JSONValue {
                try await relay.post("zones/modify", body, database: "private").json
            }
            for name in ["a", "b"] { _ = try await post(Self.zone("create", name)) }
            let both = ["a", "b"].map { name in
                #"{"operationType":"delete","zone":{"zoneID":{"zoneName":"\#(name)"}}}"#
            }
            let answer = try await post(#"{"operations":[\#(both.joined(separator: ","))]}"#)
            #expect(answer.value(at: ["zones", "0", "deleted"]) == true, "\(answer.text)")
            #expect(
                answer.value(at: ["zones", "1", "serverErrorCode"]) == "THROTTLED",
                "\(answer.text)")
            let later = try await post(Self.zone("delete", "b"))
            #expect(later.value(at: ["zones", "0", "deleted"]) == true, "\(later.text)")
        }
    }

    @Test func `beside other containers a zone's records are deleted by the container's share`()
        async throws
    {
        // Only the test reports what is followed, so a request that waits is refused, however soon.
        let turns = IntakeTurns(clock: ContinuousClock(), patience: .milliseconds(1))
        let other = ContainerKey(
            container: known("iCloud.com.example.Music"), environment: .development)
        try await TestRelay.with(adjusting: { $0.turns = turns }) { relay in
            func delete() async throws -> JSONValue? {
                let answer = try await relay.post(
                    "zones/modify", Self.zone("delete", "notes"), database: "private")
                return answer.json.value(at: ["zones", "0"])
            }
            _ = try await relay.post(
                "zones/modify", Self.zone("create", "notes"), database: "private")
            for number in 0..<20 {
                let saved = try await relay.post(
                    "records/modify", Self.create("n\(number)", in: "notes"),
                    database: "private")
                #expect(saved.status == 200, "\(saved.text)")
            }
            _ = try await turns.run(other, changes: 1) { ((), nil) }
            let early = try await delete()
            #expect(early?.value(at: ["serverErrorCode"]) == "THROTTLED", "\(early?.text ?? "")")
            let full = try await relay.store.head()
            turns.followed(upTo: full)
            let half = try await delete()
            #expect(half?.value(at: ["serverErrorCode"]) == "THROTTLED", "\(half?.text ?? "")")
            let head = try await relay.store.head()
            #expect(head.rawValue - full.rawValue == 16)
            turns.followed(upTo: head)
            let gone = try await delete()
            #expect(gone?.value(at: ["deleted"]) == true, "\(gone?.text ?? "")")
        }
    }

    @Test func `a zone is created, filled, followed and deleted`() async throws {
        try await TestRelay.with { relay in
            func post(_ path: String, _ body: String) async throws -> TestRelay.Answer {
                try await relay.post(path, body, database: "private")
            }
            let created = try await post("zones/modify", Self.zone("create", "notes"))
            #expect(
                created.json.value(at: ["zones", "0", "zoneID", "ownerRecordName"]) == "_alice")
            #expect(created.json.value(at: ["zones", "0", "atomic"]) == true)
            let listed = try await relay.call(
                .get, TestRelay.path + "/private/zones/list" + TestRelay.query())
            #expect(Self.zones(listed) == ["_defaultZone", "notes"])

            let start = try await post("zones/changes", "{}")
            #expect(Self.zones(start) == ["notes"], "\(start.text)")
            let token = Self.text(start["metaSyncToken"])
            #expect(
                Self.zones(try await post("zones/changes", #"{"metaSyncToken":"\#(token)"}"#)) == []
            )
            for name in ["n1", "n2", "n3"] {
                _ = try await post("records/modify", Self.create(name, in: "notes"))
            }
            #expect(
                Self.zones(try await post("zones/changes", #"{"metaSyncToken":"\#(token)"}"#))
                    == ["notes"])

            let zoneID = #""zoneID":{"zoneName":"notes","ownerRecordName":"_alice"}"#
            let page = try await post("records/changes", #"{\#(zoneID),"resultsLimit":2}"#)
            #expect(RecordScenarioTests.names(page) == ["n1", "n2"], "\(page.text)")
            #expect(page["moreComing"] == true)
            let next = Self.text(page["syncToken"])
            _ = try await post(
                "records/modify",
                #"{"operations":[{"operationType":"forceDelete","record":{"recordName":"n1"}}],"#
                    + "\(zoneID)}")
            let rest = try await post(
                "records/changes", #"{\#(zoneID),"syncToken":"\#(next)"}"#)
            #expect(RecordScenarioTests.names(rest) == ["n3", "n1"], "\(rest.text)")
            #expect(rest.json.value(at: ["records", "1", "deleted"]) == true)
            #expect(rest["moreComing"] == false)

            let newer = try await post(
                "changes/zone", #"{"zones":[{\#(zoneID)},{"zoneID":{"zoneName":"none"}}]}"#)
            #expect(newer.json.value(at: ["zones", "0", "records", "2"]) != nil, "\(newer.text)")
            #expect(newer.json.value(at: ["zones", "1", "serverErrorCode"]) == "ZONE_NOT_FOUND")
            let database = try await post("changes/database", "{}")
            #expect(Self.zones(database) == ["notes"])

            let foreign = try await post(
                "records/changes", #"{"zoneID":{"zoneName":"_defaultZone"},"syncToken":"\#(next)"}"#
            )
            #expect(foreign.status == 400)
            let deleted = try await post("zones/modify", Self.zone("delete", "notes"))
            #expect(deleted.json.value(at: ["zones", "0", "deleted"]) == true, "\(deleted.text)")
            let gone = try await post("records/changes", "{\(zoneID)}")
            #expect(gone["serverErrorCode"] == "ZONE_NOT_FOUND")
            let mark = try await post("zones/changes", #"{"metaSyncToken":"\#(token)"}"#)
            #expect(mark.json.value(at: ["zones", "0", "deleted"]) == true, "\(mark.text)")
        }
    }

    @Test func `a DELETE_SELF reference into another zone does not delete a namesake`()
        async throws
    {
        @Sendable func child(_ name: String, zone: String) -> String {
            #"{"operations":[{"operationType":"create","record":{"recordName":"\#(name)","#
                + #""recordType":"Child","fields":{"parent":{"value":{"recordName":"x","zoneID":"#
                + #"{"zoneName":"\#(zone)"},"action":"DELETE_SELF"}}}}}],"#
                + #""zoneID":{"zoneName":"za"}}"#
        }
        try await TestRelay.with { relay in
            func post(_ path: String, _ body: String) async throws -> TestRelay.Answer {
                try await relay.post(path, body, database: "private")
            }
            for zone in ["za", "zb"] {
                _ = try await post("zones/modify", Self.zone("create", zone))
                _ = try await post("records/modify", Self.create("x", in: zone))
            }
            _ = try await post("records/modify", child("far", zone: "zb"))
            _ = try await post("records/modify", child("near", zone: "za"))
            _ = try await post(
                "records/modify",
                #"{"operations":[{"operationType":"forceDelete","record":{"recordName":"x"}}],"#
                    + #""zoneID":{"zoneName":"za"}}"#)
            let rest = try await post(
                "records/query",
                #"{"query":{"recordType":"Child"},"zoneID":{"zoneName":"za"}}"#)
            #expect(RecordScenarioTests.names(rest) == ["far"], "\(rest.text)")
        }
    }

    @Test func `no zone is changed if a later operation cannot be read`() async throws {
        try await TestRelay.with { relay in
            let refused = try await relay.post(
                "zones/modify",
                #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"half"}}},"#
                    + #"{"operationType":"bogus","zone":{"zoneID":{"zoneName":"x"}}}]}"#,
                database: "private")
            #expect(refused.status == 400, "\(refused.text)")
            #expect(refused.text.contains("operations[1].operationType"), "\(refused.text)")
            let found = try await relay.post(
                "zones/lookup", #"{"zones":["half"]}"#, database: "private")
            #expect(found.json.value(at: ["zones", "0", "serverErrorCode"]) == "ZONE_NOT_FOUND")
        }
    }

    @Test(
        arguments: [
            ("public", "zones/modify", zone("create", "z"), 400),
            ("private", "zones/modify", "{}", 400),
            ("private", "zones/modify", #"{"operations":[{"operationType":"create"}]}"#, 400),
            ("private", "zones/lookup", #"{"zones":[{}]}"#, 400),
            ("private", "zones/lookup", #"{"zones":[{"zoneID":"x"}]}"#, 200),
            ("private", "zones/changes", #"{"metaSyncToken":"AAAA"}"#, 400),
            ("private", "changes/database", "", 200),
            ("public", "records/changes", "{}", 200),
            ("public", "records/changes", #"{"reverse":true}"#, 400),
        ])
    func `zone calls:`(database: String, path: String, body: String, status: Int) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post(path, body, database: database)
            #expect(answer.status == status, "\(answer.text)")
        }
    }
}

/// A clock on which eleven seconds pass from one reading to the next.
private struct LeapingClock: Clock {
    private let clock = TestClock()

    var now: TestClock.Instant {
        clock.advance(by: .seconds(11))
        return clock.now
    }

    var minimumResolution: Duration { clock.minimumResolution }

    func sleep(until deadline: TestClock.Instant, tolerance: Duration?) async throws {
        try await clock.sleep(until: deadline, tolerance: tolerance)
    }
}
