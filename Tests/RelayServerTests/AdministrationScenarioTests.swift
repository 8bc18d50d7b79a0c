import Crypto
import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// The administrative surface.
@Suite struct AdministrationScenarioTests {
    private static let container = "containers/iCloud.com.example.Art/development"

    private func list(_ answer: TestRelay.Answer, _ name: String) -> [JSONValue] {
        if case .array(let elements)? = answer[name] { elements } else { [] }
    }

    private func member(_ value: JSONValue?, _ name: String) -> JSONValue? {
        if case .object(let object)? = value { object[name] } else { nil }
    }

    @Test func `a container is created once, changed in parts and shown without secrets`()
        async throws
    {
        try await TestRelay.with { relay in
            let path = "containers/iCloud.com.example.New/production"
            let pem = P256.Signing.PrivateKey().pemRepresentation
            let body: JSONValue = [
                "topics": ["com.example.New"],
                "apns": [
                    "teamID": "TEAM123456", "keyID": "KEY1234567", "privateKey": .string(pem),
                ],
                "userTokens": ["sharedSecret": .string(TestRelay.sharedSecret)],
            ]
            let made = try await relay.admin(.put, path, body.text)
            #expect(made.status == 201, "\(made.text)")
            #expect(!made.text.contains("PRIVATE KEY"))
            #expect(!made.text.contains(TestRelay.sharedSecret))
            let again = try await relay.admin(.put, path, body.text)
            #expect(again.status == 409)
            let changed = try await relay.admin(
                .patch, path, #"{"userTokens":null,"expirationSeconds":60}"#)
            #expect(changed["userTokens"] == nil)
            #expect(changed["expirationSeconds"] == 60)
            #expect(member(changed["apns"], "keyID") == "KEY1234567")
        }
    }

    static let badSettings: [(String, String)] = [
        (#"{"topics":[]}"#, "topics: must be 1 to 32 bundle IDs"),
        (
            #"{"topics":["a b"]}"#,
            "topics[0]: must be 1 to 255 letters, digits, dots, hyphens and underscores"
        ),
        (
            #"{"topics":["com.example.Art","com.example.Kiosk","com.example.Art"]}"#,
            "topics[2]: \"com.example.Art\" is there already; name each topic once"
        ),
        (
            #"{"topics":["com.example.Art","courier"]}"#,
            "topics[1]: \"courier\" is reserved for devices of web couriers; give the "
                + "application's bundle ID"
        ),
        (
            #"{"apns":{"teamID":"T","keyID":"K","privateKey":"x"}}"#,
            "apns.privateKey: must be an ECDSA P-256 private key in PEM form (APNs: the .p8 file)"
        ),
        (
            #"{"apns":{"certificate":"MIID"}}"#,
            "apns.certificate: cannot be read: the file is damaged, or it is encrypted with an "
                + "unsupported cipher"
        ),
        (
            #"{"userTokens":{"sharedSecret":"short"}}"#,
            "userTokens.sharedSecret: must be at least 32 bytes (RFC 7518, HS256)"
        ),
        (
            #"{"apns":{"teamID":"TEAM-1","keyID":"K","privateKey":"x"}}"#,
            "apns.teamID: must be 1 to 64 letters and digits (APNs: ten)"
        ),
        (
            #"{"apns":{"teamID":"T","keyID":"K_1","privateKey":"x"}}"#,
            "apns.keyID: must be 1 to 64 letters and digits (APNs: ten)"
        ),
        (
            #"{"userTokens":{"sharedSecret":"a shared secret of at least 32 bytes","#
                + #""audience":""}}"#,
            "userTokens.audience: must not be empty; leave it out instead"
        ),
        (
            #"{"userTokens":{"sharedSecret":"a shared secret of at least 32 bytes","#
                + #""userClaim":""}}"#,
            "userTokens.userClaim: must not be empty; leave it out instead"
        ),
        (
            #"{"userTokens":{}}"#,
            "userTokens.sharedSecret: one of sharedSecret and keySet is required"
        ),
        (
            #"{"userTokens":{"keySet":{"keys":[]}}}"#,
            "userTokens.keySet: the container's key set cannot be read: it has no signing key for "
                + "RS256 (2048 to 4096 bits), ES256 or EdDSA"
        ),
        (
            #"{"name":"x"}"#,
            "name: unknown field; allowed are topics, apns, userTokens, expirationSeconds, "
                + "keepsInbox, sessions, costLimits, quotas, rates"
        ),
        (
            #"{"costLimits":{"predicate":0}}"#,
            "costLimits.predicate: must be 1 to 10000000 comparisons"
        ),
        (
            #"{"costLimits":{"users":3}}"#,
            "costLimits.users: unknown field; allowed are predicate, user, recordType"
        ),
    ]

    @Test func `costs and sessions that are not named keep their values`() async throws {
        try await TestRelay.with { relay in
            func set(_ body: String) async throws -> TestRelay.Answer {
                let answer = try await relay.admin(.patch, Self.container, body)
                #expect(answer.status == 200, "\(answer.text)")
                return answer
            }
            _ = try await set(#"{"costLimits":{"predicate":3},"sessions":{"minutes":5}}"#)
            var shown = try await set(#"{"costLimits":{"user":9},"sessions":{"days":7}}"#)
            #expect(shown["costLimits"] == ["predicate": 3, "user": 9])
            #expect(shown["sessions"] == ["minutes": 5, "days": 7])
            shown = try await set(#"{"costLimits":{"predicate":null},"sessions":{"days":null}}"#)
            #expect(shown["costLimits"] == ["user": 9])
            #expect(shown["sessions"] == ["minutes": 5, "days": 14])
            shown = try await set(#"{"costLimits":null,"sessions":null}"#)
            #expect(shown["costLimits"] == nil && shown["sessions"] == nil)
            // A container that starts sessions again has the defaults of a new container.
            shown = try await set(#"{"sessions":{"days":2}}"#)
            #expect(shown["sessions"] == ["minutes": 1440, "days": 2])
        }
    }

    @Test func `invalid settings are refused with their place`() async throws {
        try await TestRelay.with { relay in
            for (body, reason) in Self.badSettings {
                let answer = try await relay.admin(.patch, Self.container, body)
                #expect(answer.status == 400)
                #expect(answer["reason"] == .string(reason))
            }
        }
    }

    @Test func `a key works until it is revoked, and its secret is shown once`()
        async throws
    {
        try await TestRelay.with { relay in
            let made = try await relay.admin(
                .post, Self.container + "/keys", #"{"kind":"bearer","label":"backend"}"#)
            #expect(made.status == 201)
            guard case .string(let secret)? = made["secret"], case .string(let id)? = made["id"]
            else {
                Issue.record("\(made.text)")
                return
            }
            let headers = ["Authorization": "Bearer \(secret)", "X-Belfry-User": "_alice"]
            let path = TestRelay.path + "/public/users/caller"
            let before = try await relay.call(.get, path, headers: headers)
            #expect(before.status == 200)
            let listed = try await relay.admin(.get, Self.container + "/keys")
            #expect(!listed.text.contains(secret))
            #expect(!listed.text.contains(Secrets.verifier(of: secret)))
            let revoked = try await relay.admin(.delete, Self.container + "/keys/\(id)")
            #expect(revoked.status == 200)
            let after = try await relay.call(.get, path, headers: headers)
            #expect(after["reason"] == "the key \"backend\" was revoked")
            let twice = try await relay.admin(.delete, Self.container + "/keys/\(id)")
            #expect(twice.status == 404)
        }
    }

    @Test func `a server-to-server key is created with CloudKit's own ID`() async throws {
        try await TestRelay.with { relay in
            let body: JSONValue = [
                "kind": "serverToServer", "id": "abc",
                "publicKey": .string(SignatureVectors.publicKey),
            ]
            let made = try await relay.admin(.post, Self.container + "/keys", body.text)
            #expect(made.status == 201, "\(made.text)")
            #expect(made["secret"] == nil)
            let answer = try await relay.call(
                .get, TestRelay.path + "/public/subscriptions/list",
                headers: SignatureVectors.headers(SignatureVectors.listWithHash, keyID: "abc"))
            #expect(answer.status == 200, "\(answer.text)")
            let again = try await relay.admin(.post, Self.container + "/keys", body.text)
            #expect(again.status == 409)
        }
    }

    @Test func `subscriptions and devices are listed and deleted`() async throws {
        try await TestRelay.with { relay in
            for user in ["_alice", "_bob"] {
                _ = try await relay.post(
                    "subscriptions/modify",
                    SubscriptionScenarioTests.create(SubscriptionScenarioTests.query("q/1")),
                    user: user)
            }
            let token = String(repeating: "ab", count: 32)
            let registered = try await relay.call(
                .post,
                "/database/1/iCloud.com.example.Art/development/tokens/register"
                    + TestRelay.query().replacing("ckjsVersion=2.0.3&", with: "")
                    + "&clientId=phone",
                body: #"{"apnsEnvironment":"development","apnsToken":"\#(token)"}"#)
            #expect(registered["deviceID"] == "phone", "\(registered.text)")

            let page = try await relay.admin(.get, Self.container + "/subscriptions?limit=1")
            #expect(list(page, "subscriptions").count == 1)
            guard case .string(let before)? = page["before"] else {
                Issue.record("\(page.text)")
                return
            }
            #expect(member(list(page, "subscriptions").first, "userRecordName") == "_bob")
            let next = try await relay.admin(
                .get, Self.container + "/subscriptions?before=\(before)")
            #expect(member(list(next, "subscriptions").first, "userRecordName") == "_alice")
            let deleted = try await relay.admin(
                .delete, Self.container + "/subscriptions/public/_bob/q%2F1")
            #expect(deleted.status == 200, "\(deleted.text)")

            let devices = try await relay.admin(.get, Self.container + "/devices?user=_alice")
            #expect(list(devices, "devices").count == 1)
            #expect(!devices.text.contains(token))
            let forgotten = try await relay.admin(.delete, Self.container + "/devices/phone")
            #expect(forgotten.status == 200)
            let overview = try await relay.admin(.get, "overview")
            #expect(member(list(overview, "containers").first, "devices") == 0)
        }
    }

    @Test func `a redriven delivery is listed as waiting despite its last receipt`() async throws {
        try await TestRelay.with { relay in
            let owed = Fixtures.delivery(at: 1)
            var step = SettledStep(from: .start, to: .start)
            step.deadLetters = [
                DeadLetter(
                    delivery: owed, attempts: 1, status: 400, reason: "BadTopic", at: TestRelay.now)
            ]
            step.receipts = [
                DeliveryReceipt(
                    deliveryID: owed.delivery.id, ordinal: owed.delivery.ordinal,
                    subscriptionSerial: 1, deviceSerial: 1, outcome: .dead, status: 400,
                    reason: "BadTopic", attempt: 1, at: TestRelay.now)
            ]
            try await relay.store.settle(step)
            func count(_ state: String) async throws -> Int {
                list(try await relay.admin(.get, "deliveries?state=\(state)"), "deliveries").count
            }
            #expect(try await (count("dead"), count("waiting")) == (1, 0))
            let redriven = try await relay.admin(
                .post, Self.container + "/deadLetters/redrive", #"{"all":true}"#)
            #expect(redriven.json == ["redriven": 1, "expired": 0])
            #expect(try await (count("dead"), count("waiting")) == (0, 1))
        }
    }

    @Test func `retries show what they wait for and until when`() async throws {
        try await TestRelay.with { relay in
            var step = SettledStep(from: .start, to: .start)
            let later = TestRelay.now.advanced(by: .seconds(60))
            let reasons: [WaitReason] = [
                .said("ServiceUnavailable"), .devicePace, .said("no connection"),
            ]
            for (position, reason) in reasons.enumerated() {
                step.retries.append(
                    Retry(
                        delivery: Fixtures.delivery(at: UInt64(position + 1)), attempts: 1,
                        dueAt: position == 2 ? TestRelay.now : later,
                        reason: reason))
            }
            try await relay.store.settle(step)
            let listed = list(try await relay.admin(.get, Self.container + "/retries"), "retries")
            let kinds = listed.map { $0.value(at: ["pause", "kind"]) }
            #expect(Set(kinds) == ["backOff", "pace", "turn"])
            #expect(
                listed.allSatisfy { $0.value(at: ["pause", "until"]) == $0.value(at: ["dueAt"]) })
            let ended = try await relay.admin(.post, Self.container + "/resume", "")
            #expect(ended.json == ["ended": 0])
        }
    }

    @Test func `dead letters are never redriven by accident`() async throws {
        try await TestRelay.with { relay in
            let none = try await relay.admin(
                .post, Self.container + "/deadLetters/redrive", "{}")
            #expect(none["reason"] == #"one of ids, reason and "all": true is required"#)
            let both = try await relay.admin(
                .post, Self.container + "/deadLetters/drop", #"{"all":true,"reason":"x"}"#)
            #expect(both["reason"] == "all: cannot be given together with ids or reason")
            let all = try await relay.admin(
                .post, Self.container + "/deadLetters/drop", #"{"all":true}"#)
            #expect(all.json == ["dropped": 0])
            for path in ["/deadLetters?reason=x", "/retries"] {
                let answer = try await relay.admin(.get, Self.container + path)
                #expect(answer.status == 200)
            }
            let receipts = try await relay.admin(.get, "receipts?outcome=maybe")
            #expect(
                receipts["reason"]
                    == .string(
                        "outcome: \"maybe\" is unknown; allowed are accepted, deferred, "
                            + "unregistered, dead, seen")
            )
        }
    }

    @Test func `a generated token is valid as hexadecimal and as base64`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .post,
                "/device/1/iCloud.com.example.Art/development/tokens/create"
                    + TestRelay.query(), body: #"{"apnsEnvironment":"production"}"#)
            guard case .string(let token)? = answer["apnsToken"] else {
                Issue.record("\(answer.text)")
                return
            }
            #expect(DeviceToken(rawValue: token) != nil)
            #expect(Base64.decode(token)?.count == 48)
        }
    }

    @Test func `health, readiness and metrics are served`() async throws {
        try await TestRelay.with(readiness: .notReady(["store": "recovering"])) { relay in
            let root = try await relay.call(.get, "/")
            #expect(root.status == 200)
            #expect(root["service"] == "belfry")
            #expect(root["calls"] == "/openapi.json")
            let health = try await relay.call(.get, "/healthz")
            #expect(health.json == ["status": "ok"])
            let ready = try await relay.call(.get, "/readyz")
            #expect(ready.status == 503)
            #expect(ready["reasons"] == ["store": "recovering"])
            let head = try await relay.call(.head, "/healthz")
            #expect(head.status == 200)
            #expect(head.text.isEmpty)
            let metrics = try await relay.call(.get, "/metrics")
            #expect(
                metrics.text.contains(
                    #"belfry_http_requests_total{method="GET",path="/healthz",status="200"} 1"#))
        }
    }
}

/// What pages of other origins may do.
@Suite struct PageTests {
    @Test(arguments: ["/admin/1/overview", "/metrics"])
    func `no page of another origin reads what is the operator's`(target: String) async throws {
        try await TestRelay.with { relay in
            for method in [HTTPRequest.Method.get, .options] {
                let answer = try await relay.call(
                    method, target,
                    headers: [
                        "Authorization": "Bearer \(TestRelay.adminToken)",
                        "Origin": "https://evil.example", "Access-Control-Request-Method": "GET",
                        "Access-Control-Request-Headers": "authorization",
                    ])
                #expect((200...204).contains(answer.status))
                let names = answer.headers.map(\.name.canonicalName)
                #expect(!names.contains { $0.hasPrefix("access-control") }, "\(names)")
            }
        }
    }

    @Test(arguments: ["/healthz", "/readyz", "/", "/nothing/is/here", "/admin/1/nothing"])
    func `no page of another origin reads anything at the operator's port`(
        target: String
    ) async throws {
        let surfaces: Set<RelayRoute.Surface> = [.administration, .console, .operation, .metrics]
        try await TestRelay.with(surfaces: surfaces) { relay in
            for method in [HTTPRequest.Method.get, .options] {
                let answer = try await relay.call(
                    method, target,
                    headers: [
                        "Origin": "https://evil.example", "Access-Control-Request-Method": "GET",
                    ])
                let names = answer.headers.map(\.name.canonicalName)
                #expect(!names.contains { $0.hasPrefix("access-control") }, "\(names)")
            }
        }
    }

    @Test(arguments: ["/healthz", "/nothing/is/here"])
    func `public answers are readable without credentials`(target: String) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .get, target, headers: ["Origin": "https://evil.example"])
            #expect(answer.headers[.accessControlAllowOrigin] == "*")
            #expect(answer.headers[.accessControlAllowCredentials] == nil)
        }
    }
}
