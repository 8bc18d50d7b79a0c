import HTTPTypes
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// The relay's own user tokens.
@Suite struct SessionScenarioTests {
    private static let caller = TestRelay.path + "/public/users/caller"
    private static let signOut = TestRelay.path + "/public/users/signOut"

    private static func query(_ token: String, _ name: String = "ckWebAuthToken") -> String {
        "?ckAPIToken=\(TestRelay.apiToken)&\(name)=\(token)"
    }

    private static func fresh(_ answer: TestRelay.Answer) throws -> String {
        try #require(answer.headers[HTTPField.Name.named("X-Apple-CloudKit-Web-Auth-Token")])
    }

    private static func token(
        _ relay: TestRelay, from token: String = TestRelay.userToken()
    ) async throws -> String {
        try fresh(try await relay.call(.get, caller + query(token)))
    }

    @Test func `each answer has a new token, and the old ones keep working`() async throws {
        try await TestRelay.with { relay in
            let first = try await Self.token(relay)
            let second = try await Self.token(relay, from: first)
            #expect(first != second)
            #expect(first.hasPrefix("s1_"))
            #expect(first.utf8.allSatisfy { $0 != 0x2B && $0 != 0x2F && $0 != 0x3D })
            for token in [first, second, first, TestRelay.userToken()] {
                let answer = try await relay.call(.get, Self.caller + Self.query(token))
                #expect(answer["userRecordName"] == "_alice")
            }
            let bearer = try await relay.call(
                .get, Self.caller + "?ckAPIToken=\(TestRelay.apiToken)",
                headers: ["Authorization": "Bearer \(second)"])
            #expect(bearer["userRecordName"] == "_alice")
        }
    }

    @Test func `clients of January 2016 get tokens under their own names`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .get, Self.caller + Self.query(TestRelay.userToken(), "ckSession"))
            let header = HTTPField.Name.named("X-Apple-CloudKit-Session")
            #expect(answer.headers[header] == (try Self.fresh(answer)))
            let nobody = try await relay.call(.get, Self.caller + Self.query("null", "ckSession"))
            #expect(nobody.status == 421)
        }
    }

    @Test func `signing out ends all tokens of the session and the one it began with`()
        async throws
    {
        try await TestRelay.with { relay in
            let first = try await Self.token(relay)
            let second = try await Self.token(relay, from: first)
            let answer = try await relay.call(.post, Self.signOut + Self.query(first), body: "{}")
            #expect(answer.json == ["userRecordName": "_alice", "signedOut": true])
            for token in [first, second, TestRelay.userToken()] {
                let refused = try await relay.call(.get, Self.caller + Self.query(token))
                #expect(refused.status == 421)
                #expect(refused["serverErrorCode"] == "AUTHENTICATION_REQUIRED")
                #expect(refused["redirectURL"] != nil)
            }
            let other = try await relay.call(
                .get, Self.caller + Self.query(TestRelay.userToken("_bob")))
            #expect(other.status == 200)
        }
    }

    @Test func `a signed-out token does not come back in another spelling`() async throws {
        try await TestRelay.with { relay in
            let token = TestRelay.userToken()
            let session = try await Self.token(relay)
            let answer = try await relay.call(.post, Self.signOut + Self.query(session), body: "{}")
            #expect(answer.status == 200)
            for spelling in UserTokenTests.respellings(of: token) + [token] {
                let refused = try await relay.call(
                    .get, Self.caller + "?ckAPIToken=\(TestRelay.apiToken)",
                    headers: ["Authorization": "Bearer \(spelling)"])
                #expect(refused.status == 401 || refused.status == 421, "\(refused.text)")
            }
        }
    }

    @Test func `a provider's token that outlives its session stays signed out`() async throws {
        try await TestRelay.with { relay in
            let day: Int64 = 86_400
            let token = SignedText.hs256(
                claims: [
                    "sub": "_alice", "iss": "https://id.example", "aud": "art",
                    "exp": .integer(TestRelay.now.seconds + 60 * day),
                ], secret: TestRelay.sharedSecret)
            let session = try await Self.token(relay, from: token)
            _ = try await relay.call(.post, Self.signOut + Self.query(session), body: "{}")
            // The session would have ended by itself after two weeks.
            let later = TestRelay.now.advanced(by: .seconds(30 * day))
            while try await relay.store.pruneSessions(at: later) > 0 {}
            let refused = try await relay.call(.get, Self.caller + Self.query(token))
            #expect(refused.status == 421)
            let end = TestRelay.now.advanced(by: .seconds(60 * day))
            #expect(try await relay.store.pruneSessions(at: end) == 1)
        }
    }

    @Test func `signing out before a session began counts too`() async throws {
        try await TestRelay.with { relay in
            var settings = try #require(try await relay.store.container(TestRelay.container))
            settings.sessions = nil
            try await relay.store.save(settings, at: TestRelay.now)
            let token = TestRelay.userToken()
            let answer = try await relay.call(.post, Self.signOut + Self.query(token))
            #expect(answer.status == 200)
            let refused = try await relay.call(.get, Self.caller + Self.query(token))
            #expect(refused.status == 421)
        }
    }

    @Test func `a token is valid for its container until it ends`() async throws {
        try await TestRelay.with { relay in
            let token = try await Self.token(relay)
            var other = ContainerSettings(
                key: ContainerKey(
                    container: TestRelay.container.container, environment: .production),
                topics: ["a"])
            other.userTokens = UserTokenSettings(sharedSecret: TestRelay.sharedSecret)
            let secret = try await relay.store.sessionSecret()
            let standing = try #require(
                SessionStanding.sessionID(of: token).map {
                    SessionStanding(secret: secret, id: $0, session: nil)
                })
            let session = try #require(
                try await relay.store.session(standing.id, of: TestRelay.container))
            let parsed = try #require(SessionToken(token))
            #expect(parsed.expiresAt == TestRelay.now.advanced(by: .seconds(86_400)))
            #expect(session.endsAt == TestRelay.now.advanced(by: .seconds(14 * 86_400)))
            #expect(parsed.isSigned(by: secret, for: TestRelay.container))
            #expect(!parsed.isSigned(by: secret, for: other.key))
            #expect(!parsed.isSigned(by: Array(repeating: 1, count: 32), for: TestRelay.container))
        }
    }

    @Test func `a session ends with the key that verified its user`() async throws {
        try await TestRelay.with { relay in
            let token = try await Self.token(relay)
            var settings = try #require(try await relay.store.container(TestRelay.container))
            // Identity providers rotate their keys: an additional key ends no session.
            settings.userTokens?.keySet = TestKeys.rsaKeySet
            try await relay.store.save(settings, at: TestRelay.now)
            let renewed = try await Self.token(relay, from: token)
            settings.userTokens?.sharedSecret = nil
            try await relay.store.save(settings, at: TestRelay.now)
            for old in [token, renewed] {
                let refused = try await relay.call(.get, Self.caller + Self.query(old))
                #expect(refused.status == 421, "\(refused.text)")
                #expect(refused["redirectURL"] != nil)
            }
            settings.userTokens?.sharedSecret = "another shared secret of 32 bytes"
            try await relay.store.save(settings, at: TestRelay.now)
            let refused = try await relay.call(.get, Self.caller + Self.query(renewed))
            #expect(refused.status == 421, "\(refused.text)")
            let posted = try await relay.call(
                .post, TestRelay.path + "/public/records/lookup" + Self.query(renewed),
                body: #"{"records":["a"]}"#)
            #expect(posted.status == 421, "\(posted.text)")
        }
    }

    @Test(arguments: ["s1_", "s1_AAAA", "s1_" + String(repeating: "A", count: 86), "s1_%00"])
    func `an invented token is refused`(token: String) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(.get, Self.caller + Self.query(token))
            #expect(answer.status == 401)
            #expect(answer["reason"] == "user token: the signature is not valid")
        }
    }

    @Test func `a server's call begins no session whatever user token it has`()
        async throws
    {
        try await TestRelay.with { relay in
            // The user token is ignored in a call with a server's key.
            let parts = TestRelay.userToken().split(separator: ".")
            let forged = "\(parts[0]).\(parts[1]).AAAA"
            let answer = try await relay.call(
                .get, Self.caller + "?ckAPIToken=null&ckWebAuthToken=\(forged)",
                headers: [
                    "Authorization": "Bearer \(TestRelay.bearerKey)", "X-Belfry-User": "_carol",
                ])
            #expect(answer["userRecordName"] == "_carol", "\(answer.text)")
            let handed = answer.headers[HTTPField.Name.named("X-Apple-CloudKit-Web-Auth-Token")]
            #expect(handed?.hasPrefix("s1_") != true)
            let id = try #require(SessionStanding.sessionID(of: forged))
            #expect(try await relay.store.session(id, of: TestRelay.container) == nil)
        }
    }

    @Test func `an operator sees sessions and ends them`() async throws {
        try await TestRelay.with { relay in
            let token = try await Self.token(relay)
            let path = "containers/iCloud.com.example.Art/development/sessions"
            let listed = try await relay.admin(.get, path + "?user=_alice")
            #expect(listed.text.contains("_alice"))
            #expect(!listed.text.contains(token))
            let revoked = try await relay.admin(.delete, path + "/_alice")
            #expect(revoked["revoked"] == 1)
            let refused = try await relay.call(.get, Self.caller + Self.query(token))
            #expect(refused.status == 421)
        }
    }
}
