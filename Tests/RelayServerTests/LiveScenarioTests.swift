import Crypto
import Foundation
import RelayModel
import RelayServer
import RelayTestKit
import Synchronization
import Testing

/// Connected clients see changes: the whole relay, over real sockets.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveScenarioTests {
    static func path(_ relay: RunningRelay) -> String {
        "/live/1/\(relay.container.key.container)/\(relay.container.key.environment.rawValue)"
    }

    /// Returns the path and query for alice's POST to a live call.
    static func door(_ name: String, of relay: RunningRelay) -> String {
        path(relay) + "/\(name)?ckAPIToken=\(relay.container.apiToken)"
            + "&ckWebAuthToken=\(SampleContainer.userToken("alice"))"
    }

    static func hello(
        _ relay: RunningRelay, as user: String = "alice", on device: String? = nil
    ) -> JSONValue {
        [
            "type": "hello", "ckAPIToken": .string(relay.container.apiToken),
            "ckWebAuthToken": .string(SampleContainer.userToken(user)), "format": "plain",
            "deviceID": .string(device ?? "\(user)-page"),
        ]
    }

    static func open(
        _ relay: RunningRelay, as user: String = "alice", on device: String? = nil
    ) async throws -> LiveConnection {
        let (connection, head) = try await LiveConnection.open(
            try await relay.relay.ports.port(of: "http"), path: path(relay))
        #expect(head.hasPrefix("HTTP/1.1 101"), "\(head)")
        // The example of RFC 6455, section 1.3.
        #expect(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
        try await connection.send(hello(relay, as: user, on: device))
        let welcome = await connection.frame("welcome")
        #expect(welcome?["userRecordName"] == .string(user))
        return connection
    }

    static func keep(_ relay: RunningRelay) async throws {
        try await relay.client.administer(
            "POST", "\(relay.container.path)/schema/recordTypes/Artwork", ["shadow": true]
        ).expect(200)
    }

    static func artwork(
        _ operation: String, _ name: String, _ fields: JSONObject
    ) -> JSONValue {
        [
            "operation": .string(operation), "recordType": "Artwork", "recordName": .string(name),
            "after": .object(fields),
        ]
    }

    private static let set: JSONValue = [
        "type": "set", "version": 1,
        "queries": [
            ["id": "cheap", "recordType": "Artwork", "query": ["predicate": "price < 100"]],
            [
                "id": "new", "kind": "changes", "recordType": "Artwork",
                "query": ["predicate": "price < 100"], "firesOn": ["create"],
            ],
        ],
    ]

    /// Swift considers two spellings of one letter equal, but they are the names of two users.
    @Test func `users whose names are equal as Swift strings only see their own records`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            let users = ["zo\u{EB}", "zoe\u{308}"]
            for (number, user) in users.enumerated() {
                try await relay.container.post([
                    "operation": "create", "recordType": "Artwork",
                    "recordName": .string("of-\(number)"), "after": ["price": 1],
                    "database": "private", "owner": .string(user),
                ])
            }
            for (number, user) in users.enumerated() {
                let page = try await Self.open(relay, as: user)
                try await page.send([
                    "type": "set", "version": 1,
                    "queries": [["id": "own", "database": "private", "recordType": "Artwork"]],
                ])
                let result = await page.frame("result")
                let name = JSONValue.string("of-\(number)")
                #expect(result?["records"]?.value(at: ["0", "recordName"]) == name)
                #expect(result?["records"]?.value(at: ["1"]) == nil)
            }
        }
    }

    @Test func `a page sees a record come, change and go, and resumes where it was`() async throws {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            try await relay.container.post(Self.artwork("create", "a0", ["price": 5]))
            let page = try await Self.open(relay)
            try await page.send(Self.set)
            var frames = await page.frames(until: "at")
            let types = frames.map { $0["type"] }
            #expect(types == ["state", "result", "state", "at"])
            let shown = frames[1]["records"]?.value(at: ["0"])
            #expect(shown?.value(at: ["recordName"]) == "a0")
            #expect(shown?.value(at: ["fields", "price"]) == 5)
            let prints = frames[0]["queries"]

            try await relay.container.post(Self.artwork("create", "a1", ["price": 7]))
            frames = await page.frames(until: "at")
            #expect(Set(frames.map { $0["type"] }) == ["items", "change", "at"])
            let item = frames.first { $0["type"] == "items" }?["items"]?.value(at: ["0"])
            #expect(item?.value(at: ["op"]) == "added" && item?.value(at: ["why"]) == "created")
            let token = frames.last?["at"]
            try await page.close()

            try await relay.container.post(Self.artwork("update", "a0", ["price": 500]))
            try await relay.container.post(Self.artwork("create", "a2", ["price": 8]))
            let again = try await Self.open(relay)
            guard case .object(var set) = Self.set, case .array(var queries)? = set["queries"]
            else {
                return
            }
            for index in queries.indices {
                guard case .object(var query) = queries[index] else { continue }
                query["since"] = token
                query["fingerprint"] = prints?.value(at: ["\(index)", "fingerprint"])
                queries[index] = .object(query)
            }
            set["queries"] = .array(queries)
            try await again.send(.object(set))
            frames = await again.frames(until: "at")
            #expect(!frames.contains { $0["type"] == "result" || $0["type"] == "reset" })
            let items = frames.first { $0["type"] == "items" }?["items"]
            #expect(items?.value(at: ["0", "op"]) == "removed")
            #expect(items?.value(at: ["0", "record", "recordName"]) == "a0")
            #expect(items?.value(at: ["1", "op"]) == "added")
            #expect(items?.value(at: ["1", "record", "recordName"]) == "a2")
            #expect(frames.count { $0["type"] == "change" } == 1)
            try await again.close()
        }
    }

    @Test func `a set is accepted completely or not at all, and the wrong query is named`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            let page = try await Self.open(relay)
            try await page.send([
                "type": "set", "version": 1,
                "queries": [
                    ["id": "good", "recordType": "Artwork"],
                    ["id": "bad", "recordType": "Artwork", "query": ["predicate": "price <"]],
                    ["id": "unkept", "recordType": "Sketch"],
                    ["id": "clock", "recordType": "Artwork", "query": ["predicate": "at < now()"]],
                    ["id": "typo", "recordType": "Artwork", "sortby": []],
                ],
            ])
            let refused = await page.frame("state")
            #expect(refused?["state"] == "error")
            let faults = refused?["queries"]
            #expect(faults?.value(at: ["0", "id"]) == "bad")
            #expect(faults?.value(at: ["1", "error", "liveError"]) == "unknownType")
            #expect(faults?.value(at: ["2", "id"]) == "clock")
            #expect(faults?.value(at: ["3", "id"]) == "typo")
            try await page.send(["type": "set", "version": 2, "base": 1, "remove": []])
            #expect(await page.frame("state")?["serverErrorCode"] == "CONFLICT")
            // The connection continues.
            try await page.send(["type": "set", "version": 3, "queries": []])
            let state = await page.frame("state")
            #expect(state?["state"] == "bootstrapping" && state?["isEmpty"] == true)
            try await page.close()
        }
    }

    @Test(arguments: [
        (#"{"type":"set"}"#, UInt16(4400)), ("no json", 4400),
        (#"{"type":"hello","set":5}"#, 4400),
        (#"{"type":"hello","ckAPIToken":"wrong"}"#, 4403), (#"{"type":"hello"}"#, 4403),
    ])
    func `an invalid hello is refused with the reason`(text: String, code: UInt16) async throws {
        try await RunningRelay.with { relay in
            let (connection, _) = try await LiveConnection.open(
                try await relay.relay.ports.port(of: "http"), path: Self.path(relay))
            try await connection.send(text)
            let bye = await connection.frame("bye")
            #expect(bye?["reason"] != nil)
            let word: JSONValue? = code == 4403 ? "revoked" : nil
            #expect(bye?["liveError"] == word)
            #expect(await connection.frame() == nil)
            #expect(connection.closeCode.withLock { $0 } == code)
        }
    }

    /// A client that obeyed `reconnect` would otherwise come back after its goodbye.
    @Test func `a client that says goodbye is not asked to come back`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Self.open(relay)
            try await page.send(["type": "bye"])
            let bye = await page.frame("bye")
            #expect(bye?["code"] == 1000)
            #expect(bye?["reconnect"] == false)
            #expect(await page.frame() == nil)
            #expect(page.closeCode.withLock { $0 } == 1000)
        }
    }

    @Test func `frames that violate RFC 6455 only end their own connection`() async throws {
        try await RunningRelay.with { relay in
            let other = try await Self.open(relay)
            for (opcode, masks) in [(UInt8(1), false), (2, true), (0, true), (3, true)] {
                let page = try await Self.open(relay)
                try await page.send("{}", opcode: opcode, masks: masks)
                #expect(await page.frame("bye")?["code"] == 4400)
            }
            let parts = try await Self.open(relay)
            try await parts.send(#"{"type":"fen"#, isLast: false)
            try await parts.send(#"ce","id":"f"}"#, opcode: 0)
            #expect(await parts.frame("fenced")?["id"] == "f")
            try await other.send(["type": "fence", "id": "still"])
            #expect(await other.frame("fenced")?["id"] == "still")
        }
    }

    @Test func `a connection that served another request can become a socket`()
        async throws
    {
        try await RunningRelay.with { relay in
            let port = try await relay.relay.ports.port(of: "http")
            let before = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            let raw = try await RawConnection.open(port)
            try await raw.send(before)
            #expect(await raw.hear(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200"))
            try await raw.send(
                "GET \(Self.path(relay)) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    + "Sec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Protocol: belfry.live.v1\r\n\r\n")
            #expect(await raw.hear(until: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=").contains(" 101 "))
            // An unmasked frame: the relay reads it, although the task of the HTTP request has
            // ended.
            try await raw.send("\u{01}\u{02}{}")
            #expect(await raw.hear(until: "4400").contains("a client must mask its frames"))
            let page = try await Self.open(relay)
            for number in 0..<20 {
                try await page.send(["type": "fence", "id": .string("f\(number)")])
                #expect(await page.frame("fenced")?["id"] == .string("f\(number)"))
            }
            try await page.close()
            #expect(
                try await Turns.yield {
                    let clients = try await relay.client.administer(
                        "GET", "\(relay.container.path)/live/clients", nil
                    ).expect(200)
                    return clients["clients", "0"] == nil
                })
        }
    }

    @Test func `a request for another protocol or none is refused as one`() async throws {
        try await RunningRelay.with { relay in
            let (_, head) = try await LiveConnection.open(
                try await relay.relay.ports.port(of: "http"), path: "/live/1/only-two-parts")
            #expect(head.hasPrefix("HTTP/1.1 404"))
            let (_, missed) = try await LiveConnection.open(
                try await relay.relay.ports.port(of: "http"), path: Self.path(relay),
                first: "GET \(Self.path(relay)) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(missed.hasPrefix("HTTP/1.1 400"))
            let plain = try await relay.client.call("GET", Self.path(relay))
            #expect(plain.status == 400 && plain.text.contains("a proxy must pass"))
            let posted = try await relay.client.call("POST", Self.path(relay), body: "{}")
            #expect(posted.status == 405)
        }
    }

    @Test func `a poll returns changes, and a stream sends them`() async throws {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            try await relay.container.post(Self.artwork("create", "a0", ["price": 5]))
            guard case .object(var set) = Self.set else { return }
            set["type"] = nil
            let body: JSONValue = ["format": "plain", "set": .object(set), "wait": 0]
            let poll = try await relay.client.call(
                "POST", Self.door("poll", of: relay), body: body.text
            ).expect(200)
            #expect(poll.text.contains(#""recordName":"a0""#))
            guard case .string? = poll["at"] else {
                Issue.record("a poll says where the client stands: \(poll.text)")
                return
            }
            let text = JSONValue.object(["format": "plain", "set": .object(set)]).text
            let stream = try await RawConnection.posting(text, to: "stream", of: relay)
            let first = await stream.hear(until: "id: ")
            #expect(first.contains("text/event-stream"))
            #expect(first.contains(#""recordName":"a0""#))
            try await relay.container.post(Self.artwork("create", "a9", ["price": 9]))
            #expect(await stream.hear(until: #""a9""#).contains(#""items""#))
            let bad = try await relay.client.call(
                "POST", Self.door("poll", of: relay), body: #"{"wait": 99}"#)
            #expect(bad.status == 400 && bad.text.contains("wait: must be 0 to 25"))
        }
    }

    @Test func `a server signs a poll with its body, and another body is refused`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            try await relay.container.post(Self.artwork("create", "a0", ["price": 5]))
            let key = P256.Signing.PrivateKey()
            let made = try await relay.client.administer(
                "POST", relay.container.path + "/keys",
                ["kind": "serverToServer", "publicKey": .string(key.publicKey.pemRepresentation)]
            ).expect(201)
            guard case .string(let id)? = made["id"], case .object(var set) = Self.set else {
                Issue.record("\(made.text)")
                return
            }
            set["type"] = nil
            let body = JSONValue.object(["set": .object(set), "wait": 0]).text
            let target = Self.path(relay) + "/poll"
            let headers = try Self.signed(body, to: target, by: key, id)
            let poll = try await relay.client.call("POST", target, headers: headers, body: body)
            #expect(poll.status == 200 && poll.text.contains(#""recordName":"a0""#), "\(poll.text)")
            let other = try await relay.client.call(
                "POST", target, headers: headers, body: body + " ")
            #expect(other.status == 401, "\(other.text)")
        }
    }

    /// Returns the header fields with which a server signs a call.
    private static func signed(
        _ body: String, to target: String, by key: P256.Signing.PrivateKey, _ id: String
    ) throws -> [String: String] {
        let date = Timestamp(seconds: Int64(Date().timeIntervalSince1970)).iso8601
        let hash = Base64.encode(Array(SHA256.hash(data: Array(body.utf8))))
        let signature = try key.signature(for: Array("\(date):\(hash):\(target)".utf8))
        return [
            "X-Apple-CloudKit-Request-KeyID": id,
            "X-Apple-CloudKit-Request-ISO8601Date": date,
            "X-Apple-CloudKit-Request-SignatureV1": Base64.encode(
                Array(signature.derRepresentation)),
        ]
    }

    @Test func `a server that signs only sees the public database`() async throws {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            let key = P256.Signing.PrivateKey()
            let made = try await relay.client.administer(
                "POST", relay.container.path + "/keys",
                ["kind": "serverToServer", "publicKey": .string(key.publicKey.pemRepresentation)]
            ).expect(201)
            guard case .string(let id)? = made["id"] else {
                Issue.record("\(made.text)")
                return
            }
            let queries: [JSONObject] = [
                ["recordType": "Artwork", "database": "private"],
                ["kind": "notifications", "database": "private"],
            ]
            let target = Self.path(relay) + "/poll"
            for query in queries {
                let set: JSONObject = ["version": 1, "queries": [.object(query)]]
                let body = JSONValue.object(["set": .object(set), "wait": 0]).text
                let poll = try await relay.client.call(
                    "POST", target, headers: try Self.signed(body, to: target, by: key, id),
                    body: body)
                let reason = "a server-to-server key may use only the public database"
                #expect(poll.status == 200 && poll.text.contains(reason), "\(poll.text)")
            }
        }
    }

    /// Settings that invalidate user tokens.
    static let refusals: [JSONValue] = [
        ["userTokens": ["sharedSecret": "another shared secret of 32 bytes and more"]],
        ["userTokens": ["sharedSecret": .string(SampleContainer.userSecret), "audience": "art"]],
        ["userTokens": ["sharedSecret": .string(SampleContainer.userSecret), "userClaim": "name"]],
        ["userTokens": .null],
        ["sessions": .null],
    ]

    @Test(arguments: refusals)
    func `settings that invalidate user tokens make users reconnect`(
        settings: JSONValue
    ) async throws {
        try await RunningRelay.with { relay in
            let alice = try await Self.open(relay)
            try await relay.client.administer("PATCH", relay.container.path, settings).expect(200)
            let bye = await alice.frame("bye")
            #expect(bye?["liveError"] == "tokenExpired")
            #expect(bye?["code"] == 4401 && bye?["reconnect"] == true)
        }
    }

    @Test func `signing out or revoking a key ends the connections`() async throws {
        try await RunningRelay.with { relay in
            let alice = try await Self.open(relay)
            let bob = try await Self.open(relay, as: "bob")
            try await relay.container.call("users/signOut", [:], as: "alice", in: "public")
                .expect(200)
            #expect(await alice.frame("bye")?["liveError"] == "revoked")
            #expect(await alice.frame() == nil)
            #expect(alice.closeCode.withLock { $0 } == 4403)
            try await bob.send(["type": "fence", "id": "f"])
            #expect(await bob.frame("fenced") != nil)
            let keys = try await relay.client.administer(
                "GET", "\(relay.container.path)/keys", nil
            ).expect(200)
            guard case .string(let id)? = keys["keys", "0", "id"] else {
                Issue.record("there is a key: \(keys.text)")
                return
            }
            try await relay.client.administer("DELETE", "\(relay.container.path)/keys/\(id)", nil)
                .expect(200)
            #expect(await bob.frame("bye")?["code"] == 4403)
        }
    }

    @Test func `an operator sees connections and queries, and ends a user's sessions`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            try await relay.container.post(Self.artwork("create", "a0", ["price": 5]))
            let page = try await Self.open(relay)
            let other = try await Self.open(relay, as: "bob")
            for page in [page, other] {
                try await page.send(Self.set)
                _ = await page.frames(until: "at")
            }
            let clients = try await relay.client.administer(
                "GET", "\(relay.container.path)/live/clients", nil
            ).expect(200)
            #expect(clients["clients", "0", "userRecordName"] == "alice")
            #expect(clients["clients", "1", "queries"] == 2)
            #expect(clients["clients", "1", "isLagging"] == false)
            let groups = try await relay.client.administer(
                "GET", "\(relay.container.path)/live/groups?limit=1", nil
            ).expect(200)
            #expect(groups["groups", "0", "kind"] == "result")
            #expect(groups["groups", "0", "canonicalPredicate"] == "price < 100")
            #expect(groups["groups", "0", "clients"] == 2)
            #expect(groups["groups", "0", "members"] == 1)
            #expect(groups["groups", "1"] == nil && groups["after"] != nil)
            try await relay.client.administer(
                "DELETE", "\(relay.container.path)/sessions/alice", nil
            ).expect(200)
            #expect(await page.frame("bye")?["liveError"] == "revoked")
            try await other.send(["type": "fence", "id": "f"])
            #expect(await other.frame("fenced") != nil)
        }
    }

    @Test func `a client that reads nothing lags, costs others nothing and catches up`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            let slow = try await Self.open(relay)
            let quick = try await Self.open(relay, as: "bob")
            let set: JSONValue = [
                "type": "set", "version": 1,
                "queries": [["id": "all", "kind": "changes", "recordType": "Artwork"]],
            ]
            for page in [slow, quick] {
                try await page.send(set)
                _ = await page.frames(until: "at")
            }
            try await slow.pause()
            // More than a socket and the operating system buffer.
            let long = String(repeating: "x", count: 50_000)
            let count = 300
            var told = 0
            for number in 0..<count {
                try await relay.container.post(
                    Self.artwork("create", "r\(number)", ["text": .string(long)]))
                told += await quick.frames(until: "at").count { $0["type"] == "change" }
            }
            #expect(told == count)
            let isSeen = try await Turns.yield {
                let clients = try await relay.client.administer(
                    "GET", "\(relay.container.path)/live/clients", nil
                ).expect(200)
                return clients["clients", "0", "isLagging"] == true
                    && clients["clients", "1", "isLagging"] == false
            }
            #expect(isSeen, "an operator sees who does not read")
            try await slow.resume()
            var positions: [JSONValue] = []
            while positions.count < count, let frame = await slow.frame() {
                if frame["type"] == "change", let position = frame["position"] {
                    positions.append(position)
                }
                #expect(frame["type"] != "bye" && frame["type"] != "reset")
            }
            #expect(positions.count == count)
            #expect(Set(positions).count == count, "each once")
        }
    }

    @Test func `a change of the schema makes clients reconnect and be judged again`() async throws {
        try await RunningRelay.with { relay in
            try await Self.keep(relay)
            let page = try await Self.open(relay)
            try await page.send(Self.set)
            _ = await page.frames(until: "at")
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Artwork", ["shadow": false]
            ).expect(200)
            let bye = await page.frame("bye")
            #expect(bye?["code"] == 4503 && bye?["reconnect"] == true)
            let again = try await Self.open(relay)
            try await again.send(Self.set)
            let state = await again.frame("state")
            #expect(state?["queries"]?.value(at: ["0", "error", "liveError"]) == "notKept")
            try await again.close()
        }
    }
}
