import Live
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// Renewed tokens, and sets that are refused or edited, over real sockets.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveRenewalTests {
    typealias Live = LiveScenarioTests

    private static func renewal(_ token: String) -> JSONValue {
        ["type": "token", "ckWebAuthToken": .string(token)]
    }

    /// Returns the frames that come before a fence is reached.
    private static func told(_ page: LiveConnection) async throws -> [JSONObject] {
        try await page.send(["type": "fence", "id": "f"])
        return await page.frames(until: "fenced")
    }

    @Test func `a token is renewed by itself, and records are written as before`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let page = try await Live.open(relay)
            try await page.send(Self.renewal(SampleContainer.userToken("alice")))
            #expect(try await Self.told(page).map { $0["type"] } == ["fenced"])
            _ = await page.frame("at")
            // `hello` has asked for bare values.
            try await page.send(["type": "get", "id": "g", "query": ["recordType": "Artwork"]])
            let result = await page.frame("result")
            #expect(result?["records"]?.value(at: ["0", "fields", "price"]) == 5)
            try await page.close()
        }
    }

    @Test(arguments: ["bob", nil])
    func `a refused token leaves the previous one in effect`(user: String?) async throws {
        try await RunningRelay.with { relay in
            let page = try await Live.open(relay)
            let token = user.map { SampleContainer.userToken($0) } ?? "no token"
            try await page.send(Self.renewal(token))
            let frames = try await Self.told(page)
            #expect(frames.map { $0["type"] } == ["refused", "fenced"])
            #expect(frames.first?["id"] == "token")
            try await page.close()
        }
    }

    @Test func `the end of a token is announced once, and again for another token`() {
        var notice = TokenNotice()
        let end = Timestamp(seconds: 1000)
        let told = [939, 941, 946].map {
            notice.seconds(until: end, at: Timestamp(seconds: $0))
        }
        #expect(told == [nil, 59, nil])
        let renewed = notice.seconds(
            until: Timestamp(seconds: 1010), at: Timestamp(seconds: 951))
        #expect(renewed == 59)
    }

    @Test func `a waiting poll is answered at once when the schema changes`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let query: JSONValue = ["id": "all", "recordType": "Artwork", "initial": "none"]
            let body: JSONValue = ["wait": 25, "set": ["version": 1, "queries": [query]]]
            let (client, door) = (relay.client, Live.door("poll", of: relay))
            async let poll = client.call("POST", door, body: body.text)
            let isWaiting = try await Turns.yield {
                let clients = try await relay.client.administer(
                    "GET", "\(relay.container.path)/live/clients", nil
                ).expect(200)
                return clients["clients", "0", "queries"] == 1
            }
            #expect(isWaiting)
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Other", ["shadow": true]
            ).expect(200)
            let answer = try await poll
            #expect(answer.status == 503 && answer["retryAfter"] == 1, "\(answer.text)")
        }
    }

    @Test func `a stream opened during a change of the schema ends or shows its queries`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let queries = (0..<60).map { number -> JSONValue in
                [
                    "id": .string("q\(number)"), "recordType": "Artwork",
                    "query": ["predicate": .string("price < \(number)")],
                ]
            }
            let body = JSONValue.object(["set": ["version": 1, "queries": .array(queries)]]).text
            let (client, path) = (relay.client, relay.container.path)
            func has(_ what: String) async throws -> Bool {
                let listed = try await client.administer("GET", "\(path)/live/\(what)", nil)
                return try listed.expect(200)[what, "0"] != nil
            }
            for round in 0..<20 {
                async let changed = client.administer(
                    "POST", "\(path)/schema/recordTypes/Other",
                    ["shadow": .bool(round.isMultiple(of: 2))])
                let stream = try await RawConnection.posting(body, to: "stream", of: relay)
                _ = await stream.hear(until: "data: ")
                try await changed.expect(200)
                let isRight = try await Turns.yield {
                    guard try await has("clients") else { return true }
                    return try await has("groups")
                }
                #expect(isRight, "round \(round)")
                try await stream.close()
                let isGone = try await Turns.yield { try await !has("clients") }
                #expect(isGone)
            }
        }
    }

    @Test func `a poll with a refused set is answered`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let body: JSONValue = [
                "wait": 25,
                "set": [
                    "version": 1,
                    "queries": [
                        ["id": "bad", "recordType": "Artwork", "query": ["predicate": "price <"]]
                    ],
                ],
            ]
            let poll = try await relay.client.call(
                "POST", Live.door("poll", of: relay), body: body.text
            ).expect(200)
            #expect(poll["frames", "1", "state"] == "error", "\(poll.text)")
            #expect(poll["at"] == JSONValue.null)
        }
    }

    @Test func `a query that is to be declared anew must exist`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            try await page.send(["type": "set", "version": 1, "queries": []])
            _ = await page.frames(until: "at")
            try await page.send([
                "type": "set", "version": 2, "base": 1,
                "update": [["id": "none", "recordType": "Artwork"]],
            ])
            let state = await page.frame("state")
            #expect(state?["state"] == "error" && state?["inForce"] == 1)
            let error = state?["queries"]?.value(at: ["0", "error"])
            #expect(error?.value(at: ["serverErrorCode"]) == "NOT_FOUND")
            #expect(error?.value(at: ["liveError"]) == "unknownQuery")
            try await page.close()
        }
    }

    @Test func `declaring an existing unnamed query again changes nothing`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            let query: JSONValue = ["recordType": "Artwork"]
            try await page.send(["type": "set", "version": 1, "queries": [query, query]])
            var frames = await page.frames(until: "at")
            #expect(frames.map { $0["type"] } == ["state", "result", "state", "at"])
            try await page.send(["type": "set", "version": 2, "base": 1, "add": [query]])
            frames = await page.frames(until: "at")
            #expect(frames.map { $0["type"] } == ["state", "state", "at"])
            try await page.send([
                "type": "set", "version": 3, "base": 2, "add": [query], "ifExists": "error",
            ])
            let refused = await page.frame("state")?["queries"]?.value(at: ["0", "error"])
            #expect(refused?.value(at: ["serverErrorCode"]) == "EXISTS")
            try await page.close()
        }
    }

    @Test func `a fence waits for what is being read for the client`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post(Live.artwork("create", "a0", ["price": 5]))
            let page = try await Live.open(relay)
            try await page.send([
                "type": "set", "version": 1, "queries": [["id": "all", "recordType": "Artwork"]],
            ])
            let frames = try await Self.told(page)
            #expect(frames.map { $0["type"] } == ["state", "result", "state", "at", "fenced"])
            #expect(frames.count > 2 && frames[2]["state"] == "complete")
            _ = await page.frame("at")
            // A record with readers makes each window specific to its user, so the query begins
            // anew.
            try await page.send([
                "type": "set", "version": 2, "base": 1, "remove": ["all"],
                "add": [
                    [
                        "id": "some", "recordType": "Artwork", "limit": ["first": 3],
                        "sortBy": [["fieldName": "price"]],
                    ]
                ],
            ])
            _ = await page.frames(until: "at")
            guard case .object(var secret) = Live.artwork("create", "a1", ["price": 1]) else {
                return
            }
            secret["readers"] = ["alice"]
            try await relay.container.post(.object(secret))
            let told = try await Self.told(page)
            #expect(told.contains { $0["reason"] == "readers" }, "\(told)")
            let result = told.last { $0["type"] == "result" }
            #expect(result?["records"]?.value(at: ["0", "recordName"]) == "a1")
            try await page.close()
        }
    }

    @Test func `the page finds its script with and without a trailing slash`()
        async throws
    {
        try await RunningRelay.with { relay in
            for address in ["/live", "/live/"] {
                let page = try await relay.client.call("GET", address)
                #expect(page.status == 200)
                #expect(page.text.contains(#"src="/live/live-page.js""#))
            }
            #expect(try await relay.client.call("GET", "/live/live-page.js").status == 200)
        }
    }

    @Test func `a client admitted during a revocation is found afterwards`() {
        let container = Fixtures.container
        func identity(_ user: String, session: UInt64) -> LiveIdentity {
            LiveIdentity(
                settings: ContainerSettings(key: container, topics: []),
                user: Fixtures.identifier(user), namesUser: true, device: nil, isServer: false,
                keyID: "key", session: UUIDBytes(high: 0, low: session), endsAt: nil,
                form: LiveForm(isPlain: true, writesNumbersAsTexts: false))
        }
        var revocations = LiveRevocations()
        let mark = revocations.count
        revocations.note(.session(UUIDBytes(high: 0, low: 1), container))
        revocations.note(.schema(container))
        #expect(revocations.end(of: identity("alice", session: 1), since: mark)?.code == .forbidden)
        #expect(revocations.end(of: identity("alice", session: 2), since: mark) == nil)
        // A session that starts after the revocation is not affected.
        let later = revocations.count
        revocations.note(.sessions(Fixtures.identifier("alice"), container))
        #expect(revocations.end(of: identity("alice", session: 2), since: later) != nil)
        #expect(revocations.end(of: identity("alice", session: 3), since: revocations.count) == nil)
        // If revocations may have been forgotten, the connection ends, because it cannot be judged.
        for number in 0..<5_000 { revocations.note(.key("other\(number)", container)) }
        #expect(revocations.end(of: identity("bob", session: 9), since: mark)?.code == .notNow)
    }
}
