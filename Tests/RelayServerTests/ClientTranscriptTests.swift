import Crypto
import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Recorded requests of real clients, and the answers that they need.
///
/// The clients are CloudKit JS 2.6.1 in Node, MistKit, requests-cloudkit and curl.
@Suite struct ClientTranscriptTests {
    private static let client = "62569e40-391d-45b0-9ebd-de4221967817"
    private static let page =
        "?ckjsBuildVersion=1907ProjectDev35&ckjsVersion=2.6.1&clientId=\(client)"
        + "&ckAPIToken=\(TestRelay.apiToken)&ckWebAuthToken=\(TestRelay.userToken())"
    private static let anonymous = "?ckAPIToken=\(TestRelay.apiToken)&ckWebAuthToken=null"
    private static let device = "/device/1/iCloud.com.example.Art/development/tokens"

    // MARK: CloudKit JS 2

    @Test func `CloudKit JS 2 registers its page twice and polls one courier`() async throws {
        try await TestRelay.with { relay in
            let made = try await relay.call(
                .post, "\(Self.device)/create\(Self.page)",
                headers: ["content-type": "text/plain"],
                body: #"{"apnsEnvironment":"development","clientId":"\#(Self.client)"}"#)
            let token = try #require(made["apnsToken"])
            let again = try await relay.call(
                .post, "\(Self.device)/register\(Self.page)",
                headers: ["content-type": "text/plain"],
                body: #"{"apnsEnvironment":"development","apnsToken":\#(token.text),"#
                    + #""clientId":"\#(Self.client)"}"#)
            // The client polls the URL of the last answer.
            #expect(again["apnsToken"] == token)
            #expect(again["webcourierURL"] == made["webcourierURL"])
            #expect(again["webcourierURL"] != nil)
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.id.rawValue) == [Self.client])
        }
    }

    @Test func `CloudKit JS 2 saves, fetches and saves a record with lists`() async throws {
        try await TestRelay.with { relay in
            let saved = try await relay.call(
                .post, TestRelay.path + "/private/records/modify" + Self.page,
                headers: ["content-type": "text/plain"],
                body: #"{"operations":[{"operationType":"create","record":{"recordType":"Note","#
                    + #""recordName":"n1","fields":{"tags":{"value":["a","b"]},"#
                    + #""nums":{"value":[1,2]},"empty":{"value":[],"type":"STRING_LIST"},"#
                    + #""text":{"value":"x"}}}}]}"#)
            let record = try #require(saved.json.value(at: ["records", "0"]))
            #expect(record.value(at: ["fields", "tags", "type"]) == "STRING_LIST")
            #expect(record.value(at: ["fields", "nums", "type"]) == "INT64_LIST")
            #expect(record.value(at: ["fields", "empty", "type"]) == "STRING_LIST")
            #expect(record.value(at: ["created", "deviceID"]) == "2")
            let again = try await relay.call(
                .post, TestRelay.path + "/private/records/modify" + Self.page,
                headers: ["content-type": "text/plain"],
                body: #"{"operations":[{"operationType":"update","record":\#(record.text)}]}"#)
            #expect(
                again.json.value(at: ["records", "0", "fields"])
                    == record.value(at: ["fields"]), "\(again.text)")
        }
    }

    /// Returns the device that made the last change.
    private static func lastOrigin(_ relay: TestRelay) async throws -> String? {
        var origin: String?
        for entry in try await relay.store.entries(after: .start, limit: 9) {
            guard case .change(let change, _, _) = entry.body else { continue }
            origin = change.origin.deviceID?.rawValue
        }
        return origin
    }

    /// CloudKit JS sends a record back as it fetched it, perhaps long ago.
    @Test(arguments: ["2", "bobs-phone"])
    func `a page's change is stamped with device 2 and has the page's client as origin`(
        stated: String
    ) async throws {
        try await TestRelay.with { relay in
            _ = try await relay.post("records/modify", Self.operation("create", "n1"))
            let answer = try await relay.post(
                "records/modify",
                #"{"operations":[{"operationType":"forceUpdate","record":{"recordName":"n1","#
                    + #""recordType":"Note","fields":{"text":{"value":"b"}},"modified":"#
                    + #"{"timestamp":5,"userRecordName":"_bob","deviceID":"\#(stated)"}}}],"#
                    + #""clientId":"tab"}"#)
            let stamped = answer.json.value(at: ["records", "0", "modified", "deviceID"])
            #expect(stamped == "2", "\(answer.text)")
            let origin = try await Self.lastOrigin(relay)
            #expect(origin == "tab", "\(answer.text)")
        }
    }

    // MARK: Users

    @Test func `the caller can be asked of every database, and users are discovered in one`()
        async throws
    {
        try await TestRelay.with { relay in
            for database in ["public", "private", "shared"] {
                let place = "\(TestRelay.path)/\(database)/users"
                for call in ["current", "caller"] {
                    let answer = try await relay.call(.get, "\(place)/\(call)\(Self.page)")
                    #expect(answer["userRecordName"] == "_alice", "\(database): \(answer.text)")
                    let nobody = try await relay.call(.get, "\(place)/\(call)\(Self.anonymous)")
                    #expect(nobody.status == 421)
                }
                for method in [HTTPRequest.Method.get, .post] {
                    let answer = try await relay.call(
                        method, "\(place)/discover\(Self.page)", body: #"{"lookupInfos":[]}"#)
                    #expect(answer.status == (database == "public" ? 200 : 400))
                    guard database != "public" else { continue }
                    #expect(answer["serverErrorCode"] == "BAD_REQUEST")
                    #expect(
                        answer["reason"]
                            == .string(
                                "endpoint not applicable in the database type '\(database)db'"))
                }
            }
        }
    }

    @Test(arguments: ["DEVELOPMENT", "Development", "development"])
    func `the environment is accepted in any case`(word: String) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .get,
                "/database/1/iCloud.com.example.Art/\(word)/public/users/current\(Self.page)")
            #expect(answer.status == 200, "\(answer.text)")
            let made = try await relay.call(
                .post, "/device/1/iCloud.com.example.Art/\(word)/tokens/create\(Self.page)",
                body: #"{"apnsEnvironment":"\#(word)"}"#)
            #expect(made["apnsEnvironment"] == .string(word), "\(made.text)")
            let unknown = try await relay.call(
                .get, "/database/1/iCloud.com.example.Art/\(word)s/public/users/current\(Self.page)"
            )
            #expect(unknown.status == 400)
        }
    }

    // MARK: Nobody

    /// Operations of an anonymous client in the public database.
    @Test(arguments: ["create", "update", "replace", "forceUpdate", "forceReplace", "forceDelete"])
    func `a request that only lacks a user is refused as a whole`(kind: String) async throws {
        try await TestRelay.with { relay in
            let made = try await relay.post("records/modify", Self.operation("create", "n1"))
            let tag = try #require(
                made.json.value(at: ["records", "0", "recordChangeTag"]), "\(made.text)")
            let name = kind == "create" ? "n2" : "n1"
            let answer = try await relay.call(
                .post, "\(TestRelay.path)/public/records/modify\(Self.anonymous)",
                body: Self.operation(kind, name, tag: tag.text))
            #expect(answer.status == 421, "\(answer.text)")
            #expect(answer["serverErrorCode"] == "AUTHENTICATION_REQUIRED")
            #expect(answer["redirectURL"] != nil)
        }
    }

    @Test(arguments: ["forceUpdate", "forceReplace"])
    func `a user who may not create a record cannot do so by another operation`(
        kind: String
    ) async throws {
        try await TestRelay.with { relay in
            _ = try await relay.post("records/modify", Self.operation("create", "n1"))
            let answer = try await relay.call(
                .post, "\(TestRelay.path)/public/records/modify\(Self.anonymous)",
                body: Self.operation(kind, "n2"))
            #expect(answer.status == 421, "\(answer.text)")
            let found = try await relay.post("records/lookup", #"{"records":["n2"]}"#)
            #expect(
                found.json.value(at: ["records", "0", "serverErrorCode"]) == "NOT_FOUND",
                "\(found.text)")
        }
    }

    @Test func `operations with different outcomes are each answered in their place`() async throws
    {
        try await TestRelay.with { relay in
            _ = try await relay.post("records/modify", Self.operation("create", "n1"))
            let answer = try await relay.call(
                .post, "\(TestRelay.path)/public/records/modify\(Self.anonymous)",
                body: #"{"operations":[{"operationType":"create","record":{"recordType":"Note","#
                    + #""recordName":"n2"}},{"operationType":"delete","#
                    + #""record":{"recordName":"gone"}}]}"#)
            #expect(answer.status == 200)
            #expect(
                answer.json.value(at: ["records", "0", "serverErrorCode"])
                    == "AUTHENTICATION_REQUIRED", "\(answer.text)")
            #expect(
                answer.json.value(at: ["records", "1", "serverErrorCode"]) == "NOT_FOUND",
                "\(answer.text)")
        }
    }

    private static func operation(_ kind: String, _ name: String, tag: String = "null") -> String {
        #"{"operations":[{"operationType":"\#(kind)","record":{"recordName":"\#(name)","#
            + #""recordType":"Note","recordChangeTag":\#(tag),"fields":{"text":{"value":"a"}}}}]}"#
    }

    // MARK: Signing in

    @Test func `the sign-in URL leads back to the page that asked`() async throws {
        try await TestRelay.with { relay in
            let target = "\(TestRelay.path)/public/users/caller\(Self.anonymous)"
            let own = "https://relay.example/sign-in/1/iCloud.com.example.Art/development"
            for (origin, parameter) in [
                ("https://app.example:8443", "?origin=https%3A%2F%2Fapp.example%3A8443"),
                ("null", ""), ("javascript:alert(1)", ""), ("https://a\"b", ""),
                ("https://app.example/path", ""),
            ] {
                let answer = try await relay.call(.get, target, headers: ["Origin": origin])
                #expect(answer["redirectURL"] == .string(own + parameter))
                let page = try await relay.call(
                    .get, String(own.dropFirst("https://relay.example".count)) + parameter)
                #expect(
                    page.text.contains(#"<a href="https://app.example:8443""#)
                        == !parameter.isEmpty)
                #expect(page.status == 200)
            }
        }
    }

    @Test(arguments: [
        (
            "https://id.example/sign-in",
            "https://id.example/sign-in?container=iCloud.com.example.Art&environment=development"
                + "&origin=http%3A%2F%2Flocalhost%3A8000"
        ),
        (
            "https://id.example/?app=1#top",
            "https://id.example/?app=1&container=iCloud.com.example.Art&environment=development"
                + "&origin=http%3A%2F%2Flocalhost%3A8000#top"
        ),
    ])
    func `a page with a fixed configuration learns the container and the return address`(
        configured: String, expected: String
    ) {
        let address = SignInAddress(
            configured: configured, publicURL: "https://relay.example")
        #expect(
            address.url(of: TestRelay.container, origin: "http://localhost:8000") == expected)
    }

    // MARK: Servers

    /// Returns the headers of a server-to-server request as requests-cloudkit makes them.
    private static func signed(
        _ target: String, _ body: String, _ key: P256.Signing.PrivateKey
    ) throws -> [String: String] {
        let hash = Base64.encode(Array(SHA256.hash(data: Array(body.utf8))))
        let text = "\(SignatureVectors.date):\(hash):\(target)"
        let signature = try key.signature(for: Array(text.utf8)).derRepresentation
        return SignatureVectors.headers(Base64.encode(Array(signature)), keyID: "own")
    }

    /// Creates a server-to-server key of the container.
    private static func serverKey(of relay: TestRelay) async throws -> P256.Signing.PrivateKey {
        let key = P256.Signing.PrivateKey()
        try await relay.store.save(
            AccessKey(
                id: "own", container: TestRelay.container, kind: .serverToServer,
                verifier: key.publicKey.pemRepresentation, label: "own",
                createdAt: TestRelay.now))
        return key
    }

    @Test func `a server key that names a user is refused, because it acts as itself`()
        async throws
    {
        try await TestRelay.with { relay in
            let key = try await Self.serverKey(of: relay)
            let target = "\(TestRelay.path)/public/subscriptions/list"
            var headers = try Self.signed(target, "{}", key)
            headers["X-Belfry-User"] = "_alice"
            let answer = try await relay.call(.post, target, headers: headers, body: "{}")
            #expect(answer.status == 400, "\(answer.text)")
            #expect(answer.text.contains("a server-to-server key acts as itself"))
        }
    }

    @Test func `a server key lists its own notifications`() async throws {
        try await TestRelay.with { relay in
            let key = try await Self.serverKey(of: relay)
            var settings = try #require(
                try await relay.store.container(TestRelay.container))
            settings.keepsInbox = true
            try await relay.store.save(settings, at: TestRelay.now)
            for target in [
                "/device/1/iCloud.com.example.Art/development/notifications/list",
                "\(TestRelay.path)/public/notifications/list",
            ] {
                let answer = try await relay.call(
                    .post, target, headers: try Self.signed(target, "{}", key), body: "{}")
                #expect(answer.status == 200, "\(answer.text)")
                #expect(answer["notifications"] == [])
            }
            let target = "\(TestRelay.path)/private/notifications/list"
            let answer = try await relay.call(
                .post, target, headers: try Self.signed(target, "{}", key), body: "{}")
            #expect(answer.status == 403, "\(answer.text)")
        }
    }

    @Test func `a server key cannot take over a user's phone, and has couriers`() async throws {
        try await TestRelay.with { relay in
            let key = try await Self.serverKey(of: relay)
            let place = "/device/1/iCloud.com.example.Art/development/tokens/"
            func post(_ call: String, _ body: String) async throws -> TestRelay.Answer {
                try await relay.call(
                    .post, place + call, headers: try Self.signed(place + call, body, key),
                    body: body)
            }
            let token = String(repeating: "ab", count: 32)
            let refused = try await post(
                "register", #"{"apnsEnvironment":"development","apnsToken":"\#(token)"}"#)
            #expect(refused.status == 403, "\(refused.text)")
            #expect(refused.text.contains("tokens/create"), "\(refused.text)")
            let created = try await post("create", #"{"apnsEnvironment":"development"}"#)
            #expect(created.status == 200, "\(created.text)")
            guard case .string(let ticket)? = created["apnsToken"] else {
                Issue.record("\(created.text)")
                return
            }
            let again = try await post(
                "register", #"{"apnsEnvironment":"development","apnsToken":"\#(ticket)"}"#)
            #expect(again.status == 200, "\(again.text)")
        }
    }

    @Test func `unsigned requests do not use up a server key's rate`() async throws {
        try await TestRelay.with { relay in
            let key = try await Self.serverKey(of: relay)
            let limited = try await relay.admin(
                .patch, "containers/iCloud.com.example.Art/development", #"{"rates":{"key":1}}"#)
            #expect(limited.status == 200, "\(limited.text)")
            let target = "\(TestRelay.path)/public/subscriptions/list"
            func post(_ key: P256.Signing.PrivateKey) async throws -> Int {
                try await relay.call(
                    .post, target, headers: try Self.signed(target, "{}", key), body: "{}"
                ).status
            }
            for _ in 0..<10 { #expect(try await post(P256.Signing.PrivateKey()) == 401) }
            var statuses: [Int] = []
            for _ in 0..<400 where !statuses.contains(429) {
                statuses.append(try await post(key))
            }
            #expect(statuses.first == 200)
            #expect(statuses.last == 429)
        }
    }

    // MARK: Subscriptions

    @Test(arguments: ["desiredKeys", "additionalFields"])
    func `additional fields of a push are answered under the name that was sent`(
        name: String
    ) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post(
                "subscriptions/modify",
                #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","#
                    + #""subscriptionType":"query","query":{"recordType":"Note"},"#
                    + #""firesOn":["create"],"notificationInfo":{"\#(name)":["text"]}}}]}"#)
            let listed = try await relay.call(
                .get, "\(TestRelay.path)/public/subscriptions/list\(TestRelay.query())")
            for one in [answer, listed] {
                guard
                    case .object(let info)? = one.json.value(
                        at: ["subscriptions", "0", "notificationInfo"])
                else {
                    Issue.record("\(one.text)")
                    continue
                }
                #expect(info[name] == ["text"], "\(one.text)")
                #expect(
                    info[name == "desiredKeys" ? "additionalFields" : "desiredKeys"] == nil)
            }
        }
    }
    @Test func `an empty list of fields is returned as such, and two names at once are refused`()
        async throws
    {
        @Sendable func info(_ members: String) -> String {
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","#
                + #""subscriptionType":"query","query":{"recordType":"Note"},"#
                + #""firesOn":["create"],"notificationInfo":{\#(members)}}}]}"#
        }
        try await TestRelay.with { relay in
            let both = try await relay.post(
                "subscriptions/modify", info(#""desiredKeys":["a"],"additionalFields":["b"]"#))
            let refused = both.json.value(at: ["subscriptions", "0", "reason"])
            #expect(refused?.text.contains("additionalFields") == true, "\(both.text)")
            let none = try await relay.post(
                "subscriptions/modify", info(#""alertBody":"x","desiredKeys":[]"#))
            let kept = none.json.value(at: ["subscriptions", "0", "notificationInfo"])
            #expect(kept == ["alertBody": "x", "desiredKeys": []], "\(none.text)")
        }
    }
}
