import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// The refusal of a live query names the member that the client wrote.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveRefusalTests {
    typealias Live = LiveScenarioTests

    /// Queries that are refused, and the beginnings of the reasons.
    private static var refused: [(query: JSONObject, reason: String)] {
        let long = String(repeating: "a", count: 300)
        let digits = String(repeating: "7", count: 1025)
        let many = (0...1000).map { JSONValue.string("f\($0)") }
        return [
            (
                ["recordType": "Artwork", "desiredKeys": .array(many)],
                "queries[0].desiredKeys: at most 1000 fields"
            ),
            (
                ["recordType": "Artwork", "desiredKeys": [.string(long)]],
                "queries[0].desiredKeys: at most 1000 fields"
            ),
            (
                ["recordType": "Artwork", "sortBy": [["fieldName": .string(long)]]],
                "queries[0].sortBy[0].fieldName: the field"
            ),
            (
                [
                    "recordType": "Artwork",
                    "orderBy": ["child": .string(String(repeating: "a/", count: 513))],
                ],
                "queries[0].orderBy.child: a path may have at most"
            ),
            (
                [
                    "recordType": "Artwork", "orderBy": "priority",
                    "start": ["value": 1, "key": .string(digits)],
                ],
                "queries[0].start.key: must be at most 1024 bytes"
            ),
            (
                ["recordType": "Artwork", "orderBy": "key", "end": ["value": .string(digits)]],
                "queries[0].end.value: must be at most 1024 bytes"
            ),
            (["recordType": 5], "queries[0].recordType: a string is expected"),
            (["recordType": ""], "queries[0].recordType: not a record type"),
            (["recordType": "Artwork", "database": "shared"], "queries[0].database: the shared"),
            (
                ["recordType": "Artwork", "query": ["where": ["price": ["$in": [1]]]]],
                "queries[0].query.where.price.$in: invalid options"
            ),
            (
                ["recordType": "Artwork", "query": ["where": []]],
                "queries[0].query.where: invalid options"
            ),
            (
                [
                    "recordType": "Artwork",
                    "query": [
                        "filterBy": [
                            [
                                "comparator": "X", "fieldName": "price",
                                "fieldValue": ["value": 1],
                            ]
                        ]
                    ],
                ],
                "queries[0].query.filterBy[0].comparator: "
            ),
            (
                ["recordType": "Artwork", "query": ["predicate": "price ==="]],
                "queries[0].query.predicate at byte 6: "
            ),
        ]
    }

    @Test func `a refusal begins with the place in the frame`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            for (version, expected) in Self.refused.enumerated() {
                try await page.send([
                    "type": "set", "version": .integer(Int64(version + 1)),
                    "queries": [.object(expected.query)],
                ])
                let state = await page.frame("state")
                let error = state?["queries"]?.value(at: ["0", "error", "reason"])
                guard case .string(let reason)? = error else {
                    Issue.record("\(expected.reason) was taken: \(String(describing: state))")
                    continue
                }
                #expect(reason.hasPrefix(expected.reason), "\(reason)")
            }
            try await page.close()
        }
    }

    /// Each unknown name causes an error of its own in the answer.
    @Test func `no more names are removed at a time than there may be queries`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Live.open(relay)
            for (count, code) in [(200, "BAD_REQUEST"), (201, "QUOTA_EXCEEDED")] {
                try await page.send([
                    "type": "set", "version": 1, "base": 0,
                    "remove": .array((0..<count).map { .string("q\($0)") }),
                ])
                let state = await page.frame("state")
                #expect(state?["state"] == "error")
                #expect(state?["serverErrorCode"] == .string(code))
            }
            try await page.close()
        }
    }

    /// Compiling a pattern takes about thirty milliseconds.
    @Test func `a one-time query pays for its patterns like a saved one`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            // All are sent at once. Of 400,000 instructions 20,000 are regained each second,
            // however long the answers take.
            for number in 0..<80 {
                let predicate = "k = 'v\(number)' AND t MATCHES '\\\\w{1,20}got\(number)'"
                try await page.send([
                    "type": "get", "id": .string("g\(number)"),
                    "query": ["recordType": "Artwork", "query": ["predicate": .string(predicate)]],
                ])
            }
            var refusal: JSONValue?
            var answers = 0
            while refusal == nil, answers < 80, let frame = await page.frame() {
                if frame["type"] == "refused" { refusal = frame["serverErrorCode"] }
                if frame["type"] == "refused" || frame["type"] == "result" { answers += 1 }
            }
            #expect(refusal == "THROTTLED")
            try await page.close()
        }
    }

    @Test func `credentials in the query identify the caller`() async throws {
        try await RunningRelay.with { relay in
            let port = try await relay.relay.ports.port(of: "http")
            for user in ["alice", "bob", "bob", "alice"] {
                let query =
                    "?ckAPIToken=\(relay.container.apiToken)"
                    + "&ckWebAuthToken=\(SampleContainer.userToken(user))"
                let page = try await LiveConnection.open(port, path: Live.path(relay) + query).0
                try await page.send(["type": "hello"])
                #expect(await page.frame("welcome")?["userRecordName"] == .string(user))
                try await page.close()
            }
        }
    }

    @Test func `refused clients are counted by the reason`() async throws {
        let settings = ["--live-connections", "1", "--live-allowed-origins", "https://art.example"]
        try await RunningRelay.with(settings) { relay in
            let port = try await relay.relay.ports.port(of: "http")
            for (header, status) in [
                ("Origin: https://evil.example", 403), ("Sec-WebSocket-Version: 12", 426),
            ] {
                let head = try await LiveConnection.open(
                    port, path: Live.path(relay), headers: [header]
                ).head
                #expect(head.hasPrefix("HTTP/1.1 \(status)"), "\(head)")
            }
            let guess = try await LiveConnection.open(port, path: Live.path(relay)).0
            try await guess.send(["type": "hello", "ckAPIToken": "wrong"])
            #expect(await guess.frame("bye")?["code"] == 4403)
            _ = try await Live.open(relay)
            let second = try await LiveConnection.open(port, path: Live.path(relay)).0
            try await second.send(Live.hello(relay, as: "bob"))
            #expect(await second.frame("bye")?["code"] == 4503)
            let metrics = try await relay.metrics()
            for reason in ["origin", "upgrade", "credentials", "connections"] {
                let line = "belfry_live_refused_total{reason=\"\(reason)\"} 1"
                #expect(metrics.contains(line), "\(metrics)")
            }
        }
    }

    /// Containers share the turns for parsing long texts, and an unknown container has none.
    @Test func `a long text for an unknown container is not parsed`() async throws {
        let long = "{" + String(repeating: "x", count: 100_000)
        try await RunningRelay.with { relay in
            let port = try await relay.relay.ports.port(of: "http")
            let nowhere = "/live/1/iCloud.com.example.Nowhere/production"
            for (path, code) in [(nowhere, 4403), (Live.path(relay), 4400)] as [(String, Int64)] {
                let stranger = try await LiveConnection.open(port, path: path).0
                try await stranger.send(long)
                let bye = await stranger.frame("bye")
                #expect(bye?["code"] == .integer(code), "\(path)")
                try await stranger.close()
            }
            for (path, status) in [(nowhere, 404), (Live.path(relay), 400)] {
                let answer = try await relay.client.call("POST", "\(path)/poll", body: long)
                #expect(answer.status == status, "\(path)")
            }
        }
    }

    @Test func `long frames are processed in order among short ones`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Live.open(relay)
            let padding = String(repeating: "x", count: 100_000)
            for number in 1...6 as ClosedRange<Int64> {
                var fence: JSONObject = ["type": "fence", "id": .string("f\(number)")]
                if number % 2 == 0 { fence["whatever"] = .string(padding) }
                try await page.send(.object(fence))
            }
            var fenced: [JSONValue?] = []
            for _ in 1...6 { fenced.append(await page.frame("fenced")?["id"]) }
            let expected: [JSONValue?] = (1...6).map { JSONValue.string("f\($0)") }
            #expect(fenced == expected)
            try await page.close()
        }
    }

    @Test func `sets and gets over a socket count as requests of their user`() async throws {
        try await RunningRelay.with(["--rates-user", "1"]) { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            // A user may make ten calls at once; `hello` was the first of them.
            for number in 0..<30 {
                try await page.send([
                    "type": "get", "id": .string("g\(number)"),
                    "query": ["recordType": "Artwork"],
                ])
            }
            for version in 1...30 as ClosedRange<Int64> {
                let set: JSONValue = ["type": "set", "version": .integer(version), "queries": []]
                try await page.send(set)
            }
            let fence: JSONValue = ["type": "fence", "id": "f"]
            try await page.send(fence)
            let frames = await page.frames(until: "fenced")
            #expect(frames.last?["type"] == "fenced")
            for type in ["refused", "state"] {
                let refused = frames.first {
                    $0["type"] == .string(type) && $0["serverErrorCode"] == "THROTTLED"
                }
                #expect(refused?["retryAfter"] == 1, "\(type)")
            }
            // Another user has a rate of their own.
            let other = try await Live.open(relay, as: "bob")
            try await other.send(["type": "set", "version": 1, "queries": []])
            #expect(await other.frame("state")?["state"] == "bootstrapping")
        }
    }

    @Test func `a poll counts once wherever its credentials are`() async throws {
        try await RunningRelay.with(["--rates-user", "1"]) { relay in
            let body = #"{"wait":0,"set":{"version":1,"queries":[]}}"#
            let who =
                "?ckAPIToken=\(relay.container.apiToken)"
                + "&ckWebAuthToken=\(SampleContainer.userToken("carol"))"
            // A user may make ten calls at once, and has made none so far.
            for _ in 0..<9 {
                try await relay.client.call(
                    "POST", Live.path(relay) + "/poll" + who, body: body
                ).expect(200)
            }
        }
    }

    @Test(arguments: ["poll", "sessions"])
    func `the head may name the application and the body the user`(door: String) async throws {
        try await RunningRelay.with { relay in
            let path = Live.path(relay) + "/\(door)"
            let body: JSONValue = [
                "ckWebAuthToken": .string(SampleContainer.userToken("alice")), "wait": 0,
                "set": ["version": 1, "queries": []],
            ]
            let token = relay.container.apiToken
            try await relay.client.call(
                "POST", path + "?ckAPIToken=\(token)", body: body.text
            ).expect(200)
            try await relay.client.call(
                "POST", path, headers: ["ckAPIToken": token], body: body.text
            ).expect(200)
        }
    }

    @Test(arguments: ["stream", "poll", "sessions"])
    func `refused credentials over HTTP have the code of a socket's end`(
        door: String
    ) async throws {
        try await RunningRelay.with { relay in
            let path = Live.path(relay) + "/\(door)"
            let known = "?ckAPIToken=\(relay.container.apiToken)"
            let bodies: [JSONObject] = [[:], ["ckAPIToken": .string(relay.container.apiToken)]]
            for (query, body) in zip([known, ""], bodies) {
                let nobody = try await relay.client.call(
                    "POST", path + query, body: JSONValue.object(body).text)
                #expect(nobody.status == 421 && nobody["liveError"] == "tokenExpired")
            }
            let wrong = try await relay.client.call(
                "POST", path + known + "&ckWebAuthToken=wrong", body: "{}")
            #expect(wrong.status == 401 && wrong["liveError"] == "revoked", "\(wrong.text)")
            let unknown = try await relay.client.call(
                "POST", path, body: #"{"ckAPIToken":"wrong"}"#)
            #expect(unknown.status == 401 && unknown["liveError"] == "revoked")
        }
    }

    @Test func `guesses are counted whatever the answer reveals`() {
        let answer = APIError(.authenticationFailed, "no")
        let guess = ExplainedRefusal(refusal: .unknownAPIToken, apiError: answer)
        #expect(AuthenticationRefusal.isBehind(guess))
        let ended = ExplainedRefusal(
            refusal: .userTokenExpired(redirectURL: "https://example.com"), apiError: answer)
        #expect(!AuthenticationRefusal.isBehind(ended))
    }
}
