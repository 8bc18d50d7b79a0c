import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Tokens that clients got from one store are refused by another store restored from its copy.
///
/// There, other changes have the same positions.
@Suite struct RestoredStoreTests {
    /// Calls with the tokens that a client keeps for them.
    private static let calls = [
        ("records/changes", #"{"zoneID":{"zoneName":"_defaultZone"}}"#, "syncToken"),
        ("changes/database", "{}", "syncToken"), ("zones/changes", "{}", "metaSyncToken"),
        ("notifications/list", "{}", "syncToken"),
    ]

    private static func create(_ relay: TestRelay, _ names: [String]) async throws {
        let operations = names.map {
            RecordScenarioTests.operation("create", RecordScenarioTests.artwork($0, "{}"))
        }
        let answer = try await relay.post(
            "records/modify", #"{"operations":[\#(operations.joined(separator: ","))]}"#,
            database: "private")
        #expect(!answer.text.contains("serverErrorCode"), "\(answer.text)")
    }

    /// Makes a call with or without a token.
    private static func ask(
        _ relay: TestRelay, _ call: (path: String, body: String, token: String), with token: String?
    ) async throws -> TestRelay.Answer {
        let member = token.map { #""\#(call.token)":"\#($0)""# } ?? ""
        let separator = call.body == "{}" || token == nil ? "" : ","
        return try await relay.post(
            call.path, call.body.dropLast() + separator + member + "}", database: "private")
    }

    private static func token(
        _ relay: TestRelay, _ call: (path: String, body: String, token: String)
    ) async throws -> String {
        let answer = try await ask(relay, call, with: nil)
        guard case .string(let token)? = answer[call.token] else {
            Issue.record("\(call.path): \(answer.text)")
            return ""
        }
        return token
    }

    @Test func `a token of the former store is answered as expired`() async throws {
        try await TestRelay.with { relay in
            var settings = try #require(try await relay.store.container(TestRelay.container))
            settings.keepsInbox = true
            try await relay.store.save(settings, at: TestRelay.now)
            try await Self.create(relay, ["a"])
            let backup = relay.store.path + "-backup"
            _ = try RelayStore.backUp(path: relay.store.path, to: backup)
            try await Self.create(relay, ["b", "c", "d"])
            var tokens: [String] = []
            for call in Self.calls { tokens.append(try await Self.token(relay, call)) }
            try await TestRelay.restored(from: backup) { [tokens] relay in
                try await Self.create(relay, ["e", "f", "g"])
                for (call, token) in zip(Self.calls, tokens) {
                    let answer = try await Self.ask(relay, call, with: token)
                    #expect(answer.status == 400, "\(call): \(answer.text)")
                    #expect(answer["changeTokenExpired"] == true, "\(call): \(answer.text)")
                    // A token of the restored store's own works.
                    let own = try await Self.token(relay, call)
                    let next = try await Self.ask(relay, call, with: own)
                    #expect(next.status == 200, "\(call): \(next.text)")
                }
                let zones = try await relay.post(
                    "changes/zone",
                    #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"},"syncToken":"\#(tokens[0])"}]}"#,
                    database: "private")
                #expect(zones.json.value(at: ["zones", "0", "changeTokenExpired"]) == true)
            }
        }
    }

    @Test func `a token between two pages of zones is answered as expired`()
        async throws
    {
        try await TestRelay.with { relay in
            let place = RecordPlace(
                container: TestRelay.container, database: .private, owner: known("_alice"))
            let zones = try (0...1000).map { try #require(ZoneID(zoneName: "z\($0)")) }
            _ = try await relay.store.createZones(zones, in: place)
            let backup = relay.store.path + "-backup"
            _ = try RelayStore.backUp(path: relay.store.path, to: backup)
            let call = Self.calls[1]
            #expect(try await Self.ask(relay, call, with: nil)["moreComing"] == true)
            let token = try await Self.token(relay, call)
            #expect(try await Self.ask(relay, call, with: token).status == 200)
            try await TestRelay.restored(from: backup) { relay in
                let answer = try await Self.ask(relay, call, with: token)
                #expect(answer["changeTokenExpired"] == true, "\(answer.text)")
            }
        }
    }

    @Test func `a continuation marker of the former store is refused`() async throws {
        try await TestRelay.with { relay in
            try await Self.create(relay, ["a", "b", "c"])
            let query = #""query":{"recordType":"Artwork"},"resultsLimit":1"#
            let page = try await relay.post(
                "records/query", "{\(query)}", database: "private")
            guard case .string(let marker)? = page["continuationMarker"] else {
                Issue.record("\(page.text)")
                return
            }
            let next = #"{\#(query),"continuationMarker":"\#(marker)"}"#
            #expect(
                try await relay.post("records/query", next, database: "private").status == 200)
            let backup = relay.store.path + "-backup"
            _ = try RelayStore.backUp(path: relay.store.path, to: backup)
            try await TestRelay.restored(from: backup) { relay in
                let answer = try await relay.post("records/query", next, database: "private")
                #expect(answer.status == 400, "\(answer.text)")
            }
        }
    }

    @Test func `the tag of a lost change overwrites no other change`() async throws {
        @Sendable func write(
            _ relay: TestRelay, _ kind: String, _ title: String, tag: String? = nil
        ) async throws -> TestRelay.Answer {
            let record = RecordScenarioTests.artwork(
                "r", #"{"title":{"value":"\#(title)"}}"#, tag: tag)
            return try await relay.post(
                "records/modify",
                RecordScenarioTests.body(RecordScenarioTests.operation(kind, record)),
                database: "private")
        }
        @Sendable func tag(_ answer: TestRelay.Answer) -> String {
            let tag = answer.json.value(at: ["records", "0", "recordChangeTag"])
            if case .string(let text)? = tag { return text }
            Issue.record("\(answer.text)")
            return ""
        }
        try await TestRelay.with { relay in
            let kept = tag(try await write(relay, "create", "one"))
            let backup = relay.store.path + "-backup"
            _ = try RelayStore.backUp(path: relay.store.path, to: backup)
            let gone = tag(try await write(relay, "forceUpdate", "two"))
            try await TestRelay.restored(from: backup) { relay in
                let other = tag(try await write(relay, "update", "other", tag: kept))
                let late = try await write(relay, "update", "three", tag: gone)
                #expect(
                    late.json.value(at: ["records", "0", "serverErrorCode"]) == "CONFLICT",
                    "\(late.text)")
                _ = tag(try await write(relay, "update", "four", tag: other))
            }
        }
    }
}
