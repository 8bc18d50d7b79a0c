import HTTPTypes
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Which credentials are accepted, and how the others are refused.
@Suite struct AuthenticationScenarioTests {
    private static let list = TestRelay.path + "/public/subscriptions/list"
    private static let api = "ckAPIToken=\(TestRelay.apiToken)"
    private static let now = TestRelay.now
    private static let otherSecret = "another secret of 32 bytes or more"
    private static let unsignedText = SignedText.unsigned(
        header: ["alg": "none"], claims: ["sub": "_alice"])

    private static func token(
        _ change: JSONObject, secret: String = TestRelay.sharedSecret
    )
        -> String
    {
        var claims: JSONObject = [
            "sub": "_alice", "iss": "https://id.example", "aud": "art",
            "exp": .integer(now.seconds + 3600),
        ]
        for member in change.members { claims[member.name] = member.value }
        return SignedText.hs256(claims: claims, secret: secret)
    }

    private static func get(
        _ description: String, _ target: String, headers: [String: String] = [:], status: Int,
        code: String? = nil, reason: String? = nil
    ) -> HTTPScenario {
        HTTPScenario(
            testDescription: description, method: .get, target: target, headers: headers,
            status: status, code: code, reason: reason)
    }

    static let accepted = [
        get(
            "API token and user token", "\(list)?\(api)&ckWebAuthToken=\(TestRelay.userToken())",
            status: 200),
        get(
            "the API token as a header, the user token as a bearer", list,
            headers: [
                "ckAPIToken": TestRelay.apiToken,
                "Authorization": "Bearer \(TestRelay.userToken())",
            ], status: 200),
        get(
            "a bearer key that names a user", list,
            headers: [
                "Authorization": "bearer \(TestRelay.bearerKey)", "X-Belfry-User": "_alice",
            ], status: 200),
        get(
            "a server-to-server signature", list,
            headers: SignatureVectors.headers(SignatureVectors.listWithNothing), status: 200),
        get(
            "a server-to-server signature at users/current",
            TestRelay.path + "/public/users/current" + SignatureVectors.query,
            headers: SignatureVectors.headers(SignatureVectors.currentWithQuery), status: 200),
    ]

    static let refused = [
        get(
            "nothing at all", list, status: 401, code: "AUTHENTICATION_FAILED",
            reason: "no credentials: send ckAPIToken (and ckWebAuthToken for a user), the "
                + "X-Apple-CloudKit-Request-* signature, or Authorization: Bearer"),
        get(
            "an unknown API token", "\(list)?ckAPIToken=other", status: 401,
            code: "AUTHENTICATION_FAILED",
            reason: "ckAPIToken: this container has no such API token"),
        get(
            "no user", "\(list)?\(api)", status: 421, code: "AUTHENTICATION_REQUIRED",
            reason: "request needs authorization: ckWebAuthToken is missing"),
        get(
            "the literal null for a user", "\(list)?\(api)&ckWebAuthToken=null", status: 421,
            code: "AUTHENTICATION_REQUIRED"),
        get(
            "an expired user token",
            "\(list)?\(api)&ckWebAuthToken=\(token(["exp": .integer(now.seconds - 1)]))",
            status: 421, code: "AUTHENTICATION_REQUIRED",
            reason: "request needs authorization: the user token has expired"),
        get(
            "a user token with another signature",
            "\(list)?\(api)&ckWebAuthToken=\(token([:], secret: otherSecret))",
            status: 401, code: "AUTHENTICATION_FAILED",
            reason: "user token: the signature is not valid"),
        get(
            "a user token of another issuer",
            "\(list)?\(api)&ckWebAuthToken=\(token(["iss": "https://evil.example"]))",
            status: 401, code: "AUTHENTICATION_FAILED", reason: "user token: wrong issuer (iss)"),
        get(
            "alg: none",
            "\(list)?\(api)&ckWebAuthToken=\(unsignedText).",
            status: 401, code: "AUTHENTICATION_FAILED",
            reason: "user token: the algorithm \"none\" is refused; allowed: HS256"),
        get(
            "an unknown bearer key", list, headers: ["Authorization": "Bearer other"],
            status: 401, code: "AUTHENTICATION_FAILED",
            reason: "Authorization: this container has no such access key"),
        get(
            "a bearer key that names nobody", list,
            headers: ["Authorization": "Bearer \(TestRelay.bearerKey)"], status: 400,
            code: "BAD_REQUEST",
            reason: "X-Belfry-User: is required here: it names the user for whom the server acts"),
        get(
            "an API token and a signature", "\(list)?\(api)",
            headers: SignatureVectors.headers(SignatureVectors.listWithHash), status: 401,
            code: "AUTHENTICATION_FAILED",
            reason:
                "the request has an API token and a server-to-server signature: send only one of "
                + "them"),
        get(
            "half a signature", list,
            headers: ["X-Apple-CloudKit-Request-KeyID": SignatureVectors.keyID], status: 401,
            code: "AUTHENTICATION_FAILED",
            reason: "server-to-server signature: the header "
                + "X-Apple-CloudKit-Request-ISO8601Date is missing"),
        get(
            "a stale signature", list,
            headers: SignatureVectors.headers(
                SignatureVectors.listWithHash, date: "2016-01-25T22:05:42Z"), status: 401,
            code: "AUTHENTICATION_FAILED",
            reason: "server-to-server signature: the date is 601 seconds old; allowed are 600"),
        get(
            "a container that nobody knows",
            "/database/1/iCloud.com.example.Other/development/public/subscriptions/list",
            status: 404, code: "NOT_FOUND",
            reason: "there is no container iCloud.com.example.Other in development"),
        get(
            "the other environment",
            "/database/1/iCloud.com.example.Art/production/public/subscriptions/list",
            status: 404, code: "NOT_FOUND",
            reason: "there is no container iCloud.com.example.Art in production"),
        get(
            "an environment that is none",
            "/database/1/iCloud.com.example.Art/staging/public/subscriptions/list", status: 400,
            code: "BAD_REQUEST",
            reason: "environment in the path: \"staging\" is unknown; allowed are development, "
                + "production"),
        get(
            "a database that is none",
            TestRelay.path + "/secret/subscriptions/list" + TestRelay.query(), status: 400,
            code: "BAD_REQUEST",
            reason: "database in the path: \"secret\" is unknown; allowed are public, private, "
                + "shared"),
    ]

    @Test func `valid credentials are accepted, and invalid ones are refused with the reason`()
        async throws
    {
        try await TestRelay.with { relay in
            for one in Self.accepted + Self.refused { try await one.check(on: relay) }
        }
    }

    @Test func `a user token with the name of a server key is refused`() async throws {
        let name = Caller.identity(ofKey: SignatureVectors.keyID, container: TestRelay.container)
        let token = Self.token(["sub": .string(name.rawValue)])
        let refused = Self.get(
            "a user with the name of a key",
            "\(Self.list)?\(Self.api)&ckWebAuthToken=\(token)",
            status: 401, code: "AUTHENTICATION_FAILED",
            reason:
                "user token: the claim \"sub\" is the record name of a server-to-server key, not "
                + "of a user")
        try await TestRelay.with { relay in try await refused.check(on: relay) }
    }

    @Test func `a signature gives access to the public database only`() async throws {
        try await TestRelay.with { relay in
            let path = TestRelay.path + "/private/subscriptions/list"
            let request = RelayRequest(
                method: "GET", target: path, uuid: "test", receivedAt: TestRelay.now)
            let caller = Caller.identity(
                ofKey: SignatureVectors.keyID, container: TestRelay.container)
            #expect(caller.rawValue.utf8.count == 33)
            #expect(request.path == path)
            let answer = try await relay.call(
                .get, TestRelay.path + "/public/users/caller" + TestRelay.query("_bob"))
            #expect(answer["userRecordName"] == "_bob")
        }
    }

    @Test func `a refusal offers signing in if it helps, and returns the token without sessions`()
        async throws
    {
        try await TestRelay.with { relay in
            let refused = try await relay.call(.get, "\(Self.list)?\(Self.api)")
            let page = "https://relay.example/sign-in/1/iCloud.com.example.Art/development"
            #expect(refused["redirectURL"] == .string(page))
            let shown = try await relay.call(
                .get, "/sign-in/1/iCloud.com.example.Art/development")
            #expect(shown.status == 200)
            #expect(shown.headers[.contentType] == "text/html; charset=utf-8")
            #expect(shown.text.contains("iCloud.com.example.Art, development"))
            let token = TestRelay.userToken()
            var settings = try #require(
                try await relay.store.container(TestRelay.container))
            settings.sessions = nil
            try await relay.store.save(settings, at: TestRelay.now)
            let answer = try await relay.call(
                .get, "\(Self.list)?\(Self.api)&ckWebAuthToken=\(token)")
            #expect(
                answer.headers[HTTPField.Name.named("X-Apple-CloudKit-Web-Auth-Token")] == token)
        }
    }

    @Test func `revoked keys are refused as revoked`() async throws {
        try await TestRelay.with { relay in
            for kind in AccessKey.Kind.allCases {
                let id = kind == .serverToServer ? SignatureVectors.keyID : kind.rawValue
                let revoked = try await relay.store.revokeAccessKey(
                    id, of: TestRelay.container, at: TestRelay.now)
                #expect(revoked)
            }
            for one in Self.accepted {
                let answer = try await relay.call(one.method, one.target, headers: one.headers)
                #expect(answer.status == 401)
                guard case .string(let reason)? = answer["reason"] else { continue }
                #expect(reason.hasSuffix("was revoked"))
            }
        }
    }

    @Test func `the administrative surface has its own token`() async throws {
        let bad = ["Authorization": "Bearer \(TestRelay.bearerKey)"]
        try await TestRelay.with { relay in
            let none = try await relay.call(.get, "/admin/1/containers")
            #expect(none.status == 401)
            #expect(none["reason"] == "admin token: Authorization: Bearer is missing")
            let other = try await relay.call(.get, "/admin/1/containers", headers: bad)
            #expect(other["reason"] == "admin token: it is not a token of this relay")
            let good = try await relay.admin(.get, "containers")
            #expect(good.status == 200)
        }
        try await TestRelay.with(adminToken: nil) { relay in
            let closed = try await relay.admin(.get, "containers")
            #expect(closed.status == 403)
        }
    }
}
