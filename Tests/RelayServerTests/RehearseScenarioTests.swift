import Fanout
import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// `subscriptions/rehearse` and its administrative counterpart, as callers see them.
@Suite(.serialized, .timeLimit(.minutes(30))) struct RehearseScenarioTests {
    /// Returns a draft of alice's.
    private static func draft(
        _ predicate: String, firesOn: [String] = ["create", "update"],
        adding members: JSONObject = [:]
    ) -> JSONValue {
        .query("draft", predicate, firesOn: firesOn, adding: members)
    }

    /// Asks as a user.
    private static func ask(
        _ question: JSONValue, _ relay: RunningRelay, as user: String = "alice",
        in database: String = "public"
    ) async throws -> RelayClient.Reply {
        try await relay.container.call(
            "subscriptions/rehearse", question, as: user, in: database)
    }

    /// Posts artworks with these prices, named after them.
    private static func post(_ prices: Int64..., to relay: RunningRelay) async throws {
        for price in prices {
            try await relay.container.post(
                .change("create", "a\(price)", ["price": .integer(price)]))
        }
    }

    private static func names(_ reply: RelayClient.Reply, _ path: String...) -> [String] {
        guard case .array(let list)? = reply.json.value(at: path) else { return [] }
        return list.compactMap { entry in
            guard case .string(let name)? = entry.value(at: ["recordName"]) else { return nil }
            return name
        }
    }

    // MARK: What is told

    @Test func `a draft's firings are counted, and nothing is stored or sent`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.post(50, 120, 20, 400, to: relay)
            try await relay.container.post(
                .change("update", "a20", ["price": 30], adding: ["before": ["price": 20]]))
            let head = try await relay.relay.store.head()
            let reply = try await Self.ask(
                ["subscription": Self.draft("price < 100")], relay
            ).expect(200)
            #expect(reply["fired"] == 3, "\(reply.text)")
            #expect(reply["pushes"] == 6)
            #expect(reply["devices"] == 2)
            #expect(reply["lookedAt", "changes"] == 5)
            #expect(reply["lookedAt", "end"] == "log")
            #expect(reply["lookedAt", "before"] == nil)
            #expect(reply["byOperation"] == ["create": 2, "update": 1, "delete": 0])
            #expect(reply["byDay", "0", "fired"] != nil)
            #expect(Self.names(reply, "examples") == ["a20", "a20", "a50"])
            #expect(reply["nearMisses", "count"] == 2, "\(reply.text)")
            #expect(
                reply["nearMisses", "examples", "0", "says"]
                    == "Did not fire: price was 400, and the condition asks for price < 100.")
            #expect(reply["predicateCost", "isResidual"] == false, "\(reply.text)")
            guard case .string(let sentence)? = reply["sentence"] else { return }
            #expect(sentence.hasPrefix("Would have fired 3 times in 5 changes"), "\(sentence)")
            #expect(sentence.hasSuffix(": 6 pushes to 2 devices. That is the whole log."))
            // The question was for five changes, so it is unknown whether there are earlier ones.
            let five = try await Self.ask(
                ["subscription": Self.draft("price < 100"), "changes": 5], relay
            ).expect(200)
            #expect(
                five["sentence"]?.string?.hasSuffix(" No earlier changes were requested.") == true,
                "\(five.text)")
            #expect(try await relay.relay.store.head() == head)
            #expect(try await relay.container.subscriptionIDs() == [])
            #expect(relay.gateway.simulated.pushes.isEmpty)
        }
    }

    @Test func `an example is the push as it is sent and names the changing device`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query(
                    "q", "price < 100",
                    info: ["alertLocalizationKey": "new", "alertLocalizationArgs": ["price"]]))
            try await relay.container.post(
                .change(
                    "create", "a1", ["price": 12],
                    adding: ["origin": ["deviceID": "phone", "userRecordName": "alice"]]))
            try await relay.relay.waitUntilSettled(within: .patience)
            let push = try #require(relay.gateway.simulated.pushes.first)
            let reply = try await Self.ask(["subscriptionID": "q"], relay).expect(200)
            #expect(reply["pushes"] == 1, "\(reply.text)")
            #expect(
                reply["examples", "0", "devices", "0"]
                    == ["deviceID": "phone", "leftOut": "It made the change."], "\(reply.text)")
            #expect(reply["examples", "0", "devices", "1", "payload"] == push.json)
            #expect(reply["examples", "0", "devices", "1", "pushType"] == "alert")
            #expect(!reply.text.contains(SampleDevice.usual[1].token))
        }
    }

    @Test func `a draft of a saved subscription is compared with the saved one`() async throws {
        try await RunningRelay.with { relay in
            try await Self.post(10, 60, 90, 140, 200, to: relay)
            try await relay.container.save(.query("q", "price < 100"))
            for question in [
                [
                    "subscriptionID": "q", "subscription": Self.draft("price > 50 AND price < 150"),
                ],
                ["subscription": .query("q", "price > 50 AND price < 150")],
            ] as [JSONValue] {
                let reply = try await Self.ask(question, relay).expect(200)
                #expect(reply["fired"] == 3, "\(reply.text)")
                #expect(reply["change", "subscriptionID"] == "q")
                #expect(reply["change", "firedBefore"] == 3)
                #expect(reply["change", "added"] == 1)
                #expect(reply["change", "removed"] == 1)
                #expect(Self.names(reply, "change", "addedExamples") == ["a140"])
                #expect(Self.names(reply, "change", "removedExamples") == ["a10"])
            }
            // A draft that was never saved is compared with nothing.
            let reply = try await Self.ask(
                ["subscription": Self.draft("price > 50")], relay
            ).expect(200)
            #expect(reply["change"] == nil)
        }
    }

    @Test func `the effect of throttle, digest and quiet hours is counted`() async throws {
        try await RunningRelay.with { relay in
            for number in 1...3 { try await relay.container.post(.change("create", "k\(number)")) }
            let plain = try await Self.ask(["subscription": Self.draft("TRUEPREDICATE")], relay)
            #expect(plain["kindness"] == nil, "\(plain.text)")
            guard case .object(var draft) = Self.draft("TRUEPREDICATE") else { return }
            draft["throttle"] = ["pushes": 1, "seconds": 86_400]
            let less = try await Self.ask(["subscription": .object(draft)], relay)
            #expect(less["pushes"] == 6, "\(less.text)")
            #expect(
                less["kindness"]
                    == [
                        "pushes": 4, "together": 2, "waiting": 0, "held": ["throttle": 4],
                    ], "\(less.text)")
            #expect(
                less["sentence"]?.string?.contains(
                    "Of these, 4 would have been sent, standing for 2 more in digests.") == true,
                "\(less.text)")
            draft["throttle"] = nil
            draft["digest"] = ["seconds": 3600, "alertBody": "{count} new works"]
            let digest = try await Self.ask(["subscription": .object(draft)], relay)
            #expect(digest["kindness", "pushes"] == 2, "\(digest.text)")
            // The newest delivery is sent for all, and the example says so.
            let push = digest["examples", "0", "devices", "0"]
            #expect(push?.value(at: ["standsFor"]) == 3, "\(digest.text)")
            #expect(
                push?.value(at: ["payload", "aps", "alert"]) == "3 new works", "\(digest.text)")
            #expect(digest["examples", "1", "devices", "0", "standsFor"] == nil)
            draft["digest"] = nil
            draft["paused"] = true
            let paused = try await Self.ask(["subscription": .object(draft)], relay)
            #expect(paused["kindness", "waiting"] == 6, "\(paused.text)")
        }
    }

    @Test func `a once subscription names the change that would fire it`() async throws {
        try await RunningRelay.with { relay in
            try await Self.post(200, 60, 90, to: relay)
            let reply = try await Self.ask(
                ["subscription": Self.draft("price < 100", adding: ["firesOnce": true])], relay
            ).expect(200)
            #expect(reply["fired"] == 1, "\(reply.text)")
            #expect(Self.names(reply, "examples") == ["a60"])
            #expect(reply["once", "position"] == reply["examples", "0", "position"])
            #expect(reply.text.contains("the first of 2 that match"), "\(reply.text)")
        }
    }

    @Test func `errors of evaluation are counted with one example`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.post(
                .change("create", "a1", ["price": 1, "title": "x"]))
            try await relay.container.post(.change("create", "a2", ["price": 1, "title": 2]))
            let reply = try await Self.ask(
                ["subscription": Self.draft("price / title > 0")], relay
            )
            #expect(reply["errors", "count"] == 1, "\(reply.text)")
            #expect(reply["errors", "example", "recordName"] != nil, "\(reply.text)")
        }
    }

    @Test func `every answer fits its schema in the document`() async throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        let schema = try #require(document.answerSchema(ofPathEnding: "/subscriptions/rehearse"))
        let check = SchemaCheck(document: document)
        try await RunningRelay.with { relay in
            try await Self.post(10, 60, 140, to: relay)
            try await relay.container.save(
                .query("q", "price < 100"),
                .query("silent", info: ["shouldSendContentAvailable": true]))
            for question in [
                ["subscriptionID": "q"], ["subscriptionID": "silent", "examples": 0],
                ["subscriptionID": "q", "subscription": Self.draft("price > 20")],
                ["subscription": Self.draft("price < 0", adding: ["firesOnce": true])],
                ["subscription": Self.draft("price < 90", adding: ["firesOnce": true])],
                ["subscription": Self.draft("colour = \"red\""), "changes": 1],
            ] as [JSONValue] {
                let reply = try await Self.ask(question, relay).expect(200)
                #expect(check.problems(reply.json, schema) == [], "\(reply.text)")
                guard case .object(var body) = question else { continue }
                body["user"] = "alice"
                let twin = try await relay.client.administer(
                    "POST", "\(relay.container.path)/rehearse", .object(body)
                ).expect(200)
                #expect(twin.json == reply.json, "\(twin.text)")
            }
        }
    }

    // MARK: Bounds

    @Test func `the answer says where it ends, why, and where to continue`() async throws {
        try await RunningRelay.with { relay in
            try await Self.post(10, 20, 30, 40, to: relay)
            let whole = try await Self.ask(["subscription": Self.draft("price < 35")], relay)
            var question: JSONObject = [
                "subscription": Self.draft("price < 35"), "changes": 3,
            ]
            let first = try await Self.ask(.object(question), relay).expect(200)
            #expect(first["lookedAt", "end"] == "changes", "\(first.text)")
            #expect(first["fired"] == 2)
            question["before"] = first["lookedAt", "before"]
            let second = try await Self.ask(.object(question), relay).expect(200)
            #expect(second["lookedAt", "end"] == "log", "\(second.text)")
            #expect(second["lookedAt", "from"] == whole["lookedAt", "from"])
            #expect(Self.names(second, "examples") == ["a10"])
            question["before"] = nil
            question["after"] = first["lookedAt", "from", "position"]
            let after = try await Self.ask(.object(question), relay).expect(200)
            #expect(after["lookedAt", "end"] == "since", "\(after.text)")
            #expect(Self.names(after, "examples") == ["a30"])
            guard case .string(let moment)? = whole["lookedAt", "to", "at"],
                let last = Timestamp(iso8601: moment)
            else { return }
            let later = last.advanced(by: .seconds(1)).iso8601
            for (since, until, changes) in [
                ("2001-01-01", later, 4), (later, "2100-01-01", 0), ("2001-01-01", "2002-01-01", 0),
            ] as [(String, String, Int64)] {
                let reply = try await Self.ask(
                    [
                        "subscription": Self.draft("price < 35"), "since": .string(since),
                        "until": .string(until),
                    ], relay
                ).expect(200)
                #expect(reply["lookedAt", "changes"] == .integer(changes), "\(reply.text)")
            }
        }
    }

    @Test func `pruned changes are not counted, and their absence is reported`() async throws {
        try await RunningRelay.with { relay in
            try await Self.post(10, to: relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            var retention = Retention()
            retention.logAge = .zero
            _ = try await relay.relay.store.prune(
                retention, at: Timestamp(seconds: 4_000_000_000), portion: 500)
            let reply = try await Self.ask(["subscription": Self.draft("price < 35")], relay)
            #expect(reply["lookedAt", "end"] == "retention", "\(reply.text)")
            #expect(reply.text.contains("retention.logHours"), "\(reply.text)")
            #expect(reply["fired"] == 0)
        }
    }

    @Test func `at its time limit a rehearsal returns what it has`() async throws {
        var settings = QueryAdmission.Settings()
        settings.time = .zero
        try await TestRelay.with(queries: settings) { relay in
            let reply = try await relay.post(
                "subscriptions/rehearse",
                #"{"subscription":{"subscriptionType":"query","query":{"recordType":"Artwork"},"#
                    + #""firesOn":["create"],"notificationInfo":{"alertBody":"x"}}}"#)
            #expect(reply.status == 200, "\(reply.text)")
            #expect(reply.text.contains("\"fired\":0"), "\(reply.text)")
        }
    }

    @Test func `a user has one rehearsal at a time, and the relay a few`()
        async throws
    {
        var settings = QueryAdmission.Settings()
        settings.rehearsals = 2
        let admission = QueryAdmission(settings: settings, clock: ContinuousClock())
        let container = Fixtures.container
        let other = ContainerKey(
            container: Fixtures.identifier("iCloud.com.example.Other"), environment: .development)
        let alice = QueryParty.user(Fixtures.identifier("alice"))
        let bob = QueryParty.user(Fixtures.identifier("bob"))
        try await admission.rehearse(alice, of: container) { _ in
            #expect(admission.count == 1)
            await Self.expectBusy("of the user is already running", admission, alice)
            try await admission.rehearse(bob, of: container) { _ in
                await Self.expectBusy("at most 2 are allowed at a time", admission, .server)
                // The rehearsals of one container do not block those of another.
                try await admission.rehearse(alice, of: other) { _ in
                    #expect(admission.count == 3)
                }
            }
            try await admission.rehearse(.server, of: container) { _ in }
        }
        #expect(admission.count == 0)
        try await admission.rehearse(alice, of: container) { _ in }
    }

    @Test func `a condition with too many steps ends it unless the change is hidden`()
        async throws
    {
        try await TestRelay.with { relay in
            var hidden = Fixtures.change(fields: ["title": .string("aaaa")])
            hidden.readers = ["bob"]
            let shown = Fixtures.change(fields: ["title": .string("abab")])
            let source: SourceName = Fixtures.identifier("database")
            _ = try await relay.store.append(
                [ChangeToAppend(hidden, key: nil)], container: TestRelay.container,
                source: source, at: TestRelay.now)
            var service = Self.service(relay)
            service.mostSteps = 1
            let draft = Self.draft("title LIKE \"*a*b*\"")
            let unseen = try await Self.answer(draft, service, relay)
            #expect(unseen.end == .log && unseen.tally.lookedAt == 0)
            _ = try await relay.store.append(
                [ChangeToAppend(shown, key: nil)], container: TestRelay.container,
                source: source, at: TestRelay.now)
            let ended = try await Self.answer(draft, service, relay)
            #expect(ended.end == .steps)
            #expect(ended.dear == (try await relay.store.head()))
            let text = ended.json.text
            #expect(text.contains("would have disabled the subscription"), "\(text)")
        }
    }

    @Test func `the place to continue reveals no hidden change and repeats no counted one`() {
        for (before, oldest, told) in [
            (5000, nil, 5120), (5000, 5050, 5050), (5000, 5000, 5000), (5120, 5121, 5120),
            (5119, nil, 5120), (9990, nil, 9999), (.max, nil, 9999),
        ] as [(UInt64, UInt64?, UInt64)] {
            let place = RehearsalRun.told(
                LogPosition(before), oldest: oldest.map { LogPosition($0) },
                beginning: LogPosition(9999))
            #expect(place == LogPosition(told), "\(before)")
        }
    }

    @Test func `a rehearsal ends when the caller disconnects`() async throws {
        try await TestRelay.with { relay in
            let service = Self.service(relay)
            let gone = Task {
                withUnsafeCurrentTask { unsafe $0?.cancel() }
                _ = try await Self.answer(Self.draft("price < 1"), service, relay)
            }
            await #expect(throws: CancellationError.self) { try await gone.value }
        }
    }

    private static func service(_ relay: TestRelay) -> RehearseService {
        let relay = relay.dependencies
        return RehearseService(
            registry: relay.registry,
            knowledge: SubscriptionKnowledge(
                shadow: relay.shadow, sources: relay.registry, decoded: relay.decodedSources,
                seen: relay.seen, logger: relay.logger),
            indexes: relay.indexes, limits: relay.limits, retention: relay.retention,
            bodies: relay.longBodies)
    }

    private static func answer(
        _ draft: JSONValue, _ service: RehearseService, _ relay: TestRelay
    ) async throws -> RehearseService.Answer {
        let owner = SubscriptionOwner(
            container: TestRelay.container, database: .public, user: Fixtures.identifier("alice"))
        let settings = try #require(
            try await relay.store.container(TestRelay.container))
        let question = try RehearseQuestion(
            try JSONReader(.object(["subscription": draft])))
        return try await QueryAdmission(clock: ContinuousClock()).rehearse(
            .server, of: TestRelay.container
        ) { allowance in
            try await service.answer(
                question, of: settings, for: owner, within: allowance, at: TestRelay.now)
        }
    }

    private static func expectBusy(
        _ reason: String, _ admission: QueryAdmission, _ party: QueryParty
    ) async {
        do {
            try await admission.rehearse(party, of: Fixtures.container) { _ in }
            Issue.record("it was let in")
        } catch {
            let error = error as? APIError
            #expect(error?.code == .throttled)
            #expect(error?.retryAfter == 2)
            #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
        }
    }

    // MARK: Rights

    /// Drafts with conditions that match, nearly match, or fail because `title` is a string.
    static let probes = [
        draft("price < 100"), draft("price / title > 0", firesOn: ["create", "update", "delete"]),
        draft("price < 100", firesOn: ["update"], adding: ["firesWhen": "entered"]),
        draft("price < 100", firesOn: ["update"], adding: ["changedKeys": ["price"]]),
        draft("price < 100", adding: ["firesOnce": true]),
    ]

    @Test(arguments: probes)
    func `changes that a user may not read do not affect the answer`(
        _ draft: JSONValue
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.post(10, 200, to: relay)
            let question: JSONValue = ["subscription": draft]
            let before = try await Self.ask(question, relay).expect(200)
            let ownBefore = try await Self.ask(question, relay, in: "private").expect(200)
            for members in [
                ["readers": ["bob"]], ["readers": []], ["database": "private", "owner": "bob"],
            ] as [JSONObject] {
                for operation in ["create", "update", "delete"] {
                    var members = members
                    if operation == "update" { members["before"] = ["price": 4711, "title": 1] }
                    try await relay.container.post(
                        .change(
                            operation, "hidden", ["price": 1, "title": "x"], adding: members))
                }
            }
            let after = try await Self.ask(question, relay).expect(200)
            #expect(after.json == before.json, "\(after.text)")
            #expect(!after.text.contains("hidden"))
            let ownAfter = try await Self.ask(question, relay, in: "private").expect(200)
            #expect(ownAfter.json == ownBefore.json, "\(ownAfter.text)")
            // The operator sees what the user would see.
            let twin = try await relay.client.administer(
                "POST", "\(relay.container.path)/rehearse",
                ["user": "alice", "subscription": draft]
            ).expect(200)
            #expect(twin.json == before.json)
            // And bob sees what is visible to bob.
            let bobs = try await Self.ask(question, relay, as: "bob").expect(200)
            #expect(bobs["lookedAt", "changes"] == 5, "\(bobs.text)")
            let bobsOwn = try await Self.ask(question, relay, as: "bob", in: "private").expect(200)
            #expect(bobsOwn["lookedAt", "changes"] == 3, "\(bobsOwn.text)")
        }
    }

    @Test func `a rehearsal of another's subscription or without a user is refused`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", "price < 100"))
            let other = try await Self.ask(["subscriptionID": "q"], relay, as: "bob")
            #expect(other.status == 404, "\(other.text)")
            let nobody = try await relay.client.call(
                "POST",
                "/database/1/\(relay.container.key.container)/development/public/"
                    + "subscriptions/rehearse?ckAPIToken=\(relay.container.apiToken)",
                body: #"{"subscriptionID":"q"}"#)
            #expect(nobody.status == 421 || nobody.status == 401, "\(nobody.status) \(nobody.text)")
        }
    }

    // MARK: Bad input

    static let refusals: [(JSONValue, Int, String)] = [
        ([:], 400, "subscription: give a draft"),
        (["subscription": 1], 400, "subscription"),
        (["subscriptionID": ""], 400, "subscriptionID"),
        (["subscriptionID": "none"], 404, "there is no subscription \"none\" of \"alice\""),
        (["subscriptionID": "none", "subscription": draft("a = 1")], 404, "subscriptionID: there"),
        (["subscription": draft("price <")], 400, "subscription.query"),
        (["subscription": ["subscriptionType": "query"]], 400, "subscription.query"),
        (["subscription": draft("a = 1", firesOn: ["read"])], 400, "subscription.firesOn[0]"),
        (["subscriptionID": "q", "changes": 0], 400, "changes: must be 1 to 100000, found 0"),
        (["subscriptionID": "q", "changes": 100_001], 400, "changes: must be 1 to 100000"),
        (["subscriptionID": "q", "changes": "9"], 400, "changes"),
        (["subscriptionID": "q", "examples": 11], 400, "examples: must be 0 to 10, found 11"),
        (["subscriptionID": "q", "since": "soon"], 400, "since: a moment is expected"),
        (["subscriptionID": "q", "until": 7], 400, "until"),
        (
            ["subscriptionID": "q", "since": "2026-01-02", "until": "2026-01-01"], 400,
            "until: must be later than since"
        ),
        (["subscriptionID": "q", "before": "x"], 400, "before: a whole number from 0"),
        (["subscriptionID": "q", "after": -1], 400, "after: a whole number from 0"),
        (
            ["subscriptionID": "q", "after": 7, "before": 7], 400,
            "before: must be greater than after (7), found 7"
        ),
        (["subscriptionID": "q", "user": "bob"], 400, "user"),
    ]

    @Test func `bad input is refused with the field and the allowed values`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            for (question, status, reason) in Self.refusals {
                let reply = try await Self.ask(question, relay)
                #expect(reply.status == status, "\(question.text): \(reply.text)")
                #expect(reply.text.replacing("\\\"", with: "\"").contains(reason), "\(reply.text)")
            }
            for (question, reason) in [
                (["subscriptionID": "q"], "user"),
                (["subscriptionID": "q", "user": "alice", "database": "x"], "database"),
                (["subscriptionID": "q", "user": "alice", "what": 1], "what"),
            ] as [(JSONValue, String)] {
                let reply = try await relay.client.administer(
                    "POST", "\(relay.container.path)/rehearse", question)
                #expect(reply.status == 400, "\(reply.text)")
                #expect(reply.text.contains(reason), "\(reply.text)")
            }
            for edge in ["0", "18446744073709551615"] {
                let reply = try await Self.ask(
                    ["subscriptionID": "q", "before": .string(edge)], relay)
                #expect(reply.status == 200, "\(reply.text)")
                let after = try await Self.ask(
                    ["subscriptionID": "q", "after": .string(edge)], relay)
                #expect(after.status == 200, "\(after.text)")
            }
        }
    }
}
