import HTTPTypes
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// What the tokens of the administrative surface may do, and what the audit log records of it.
@Suite struct AdministrationRightsTests {
    private static let container = "containers/iCloud.com.example.Art/development"

    private static func call(
        _ relay: TestRelay, _ method: HTTPRequest.Method, _ path: String, _ token: String,
        _ body: String? = nil
    ) async throws -> TestRelay.Answer {
        try await relay.call(
            method, "/admin/1/\(path)", headers: ["Authorization": "Bearer \(token)"], body: body)
    }

    /// Returns a path for a route, with names for its variable parts.
    private static func target(_ route: RelayRoute) -> String {
        route.path.dropFirst("/admin/1/".count).split(separator: "/").map { part -> String in
            switch part {
            case "{container}": "iCloud.com.example.Art"
            case "{environment}": "development"
            case "{database}": "public"
            case let part where part.hasPrefix("{"): "1"
            default: String(part)
            }
        }.joined(separator: "/")
    }

    @Test func `each call accepts exactly the tokens that its path and effect allow`()
        async throws
    {
        try await TestRelay.with { relay in
            let reading = try await relay.makeToken(#""access":"read""#)
            let changing = try await relay.makeToken(#""access":"change""#)
            let place = #""container":"iCloud.com.example.Art","environment":"development""#
            let own = try await relay.makeToken(#""access":"change",\#(place)"#)
            var other = ContainerSettings(
                key: ContainerKey(
                    container: known("iCloud.com.example.Other"), environment: .development),
                topics: ["t"])
            other.expirationSeconds = 1
            try await relay.store.save(other, at: TestRelay.now)
            let foreign = try await relay.makeToken(
                #""access":"change","container":"iCloud.com.example.Other","#
                    + #""environment":"development""#)
            let routes = RelayRouter.routes(relay.dependencies)
                .filter { $0.surface == .administration }
            #expect(routes.count > 35)
            for route in routes {
                let isOfContainer = route.path.hasPrefix("/admin/1/containers/{container}/")
                let reads =
                    route.method == "GET" || route.path.contains("/rehearse")
                    || route.path.hasSuffix("/subscriptions/check")
                let isOwn =
                    route.path.hasPrefix("/admin/1/session") || route.path == "/admin/1/console"
                let expected = [
                    (reading, reads || isOwn), (changing, reads || isOfContainer || isOwn),
                    (own, isOfContainer || isOwn), (foreign, isOwn),
                ]
                for (token, isLetIn) in expected {
                    let method = try #require(HTTPRequest.Method(route.method))
                    let answer = try await Self.call(
                        relay, method, Self.target(route), token, "{}")
                    #expect(
                        (answer.status != 403) == isLetIn,
                        "\(route.method) \(route.path) \(answer.text)")
                }
            }
        }
    }

    @Test func `a token of one container cannot set the container's bounds`() async throws {
        try await TestRelay.with { relay in
            let place = #""container":"iCloud.com.example.Art","environment":"development""#
            let own = try await relay.makeToken(#""access":"change",\#(place)"#)
            for bounds in [
                #"{"costLimits":{"user":1000000}}"#, #"{"quotas":{"records":1000000}}"#,
                #"{"rates":{"key":0}}"#, #"{"rates":null}"#,
            ] {
                let refused = try await Self.call(relay, .patch, Self.container, own, bounds)
                #expect(refused.status == 403, "\(bounds) \(refused.text)")
            }
            let allowed = try await Self.call(
                relay, .patch, Self.container, own, #"{"expirationSeconds":60}"#)
            #expect(allowed.status == 200, "\(allowed.text)")
        }
    }

    @Test(arguments: ["container", "environment", "hours"])
    func `a null does not make a token that may do more`(name: String) async throws {
        var body: JSONObject = [
            "label": "ci", "access": "read", "container": "iCloud.com.example.Art",
            "environment": "development", "hours": 1,
        ]
        body[name] = .null
        try await TestRelay.with { [body] relay in
            let refused = try await relay.admin(.post, "tokens", JSONValue.object(body).text)
            #expect(refused.status == 400)
            #expect(
                refused["reason"] == .string("\(name): must not be null; leave it out instead"))
            #expect(try await relay.store.adminTokens().isEmpty)
        }
    }

    @Test func `a revoked or expired token is refused`() async throws {
        try await TestRelay.with { relay in
            let short = try await relay.makeToken(#""access":"read","hours":1"#)
            #expect(try await Self.call(relay, .get, "overview", short).status == 200)
            let listed = try await relay.admin(.get, "tokens")
            #expect(!listed.text.contains(short))
            guard case .string(let id)? = listed.json.value(at: ["tokens", "0", "id"]) else {
                Issue.record("\(listed.text)")
                return
            }
            #expect(try await relay.admin(.delete, "tokens/\(id)").status == 200)
            let refused = try await Self.call(relay, .get, "overview", short)
            #expect(refused.status == 401)
            #expect(refused["reason"] == "admin token: it was revoked")
            #expect(try await relay.admin(.delete, "tokens/\(id)").status == 404)
            let stored = try #require(try await relay.store.adminTokens().first)
            #expect(!stored.isLive(at: TestRelay.now))
            var ending = stored
            ending.revokedAt = nil
            #expect(ending.isLive(at: TestRelay.now))
            #expect(!ending.isLive(at: TestRelay.now.advanced(by: .seconds(3600))))
        }
    }

    @Test func `the audit log has each call that changes something, without secrets`() async throws
    {
        try await TestRelay.with { relay in
            let reading = try await relay.makeToken(#""access":"read""#)
            let made = try await relay.admin(
                .post, Self.container + "/keys?note=hidden", #"{"kind":"bearer"}"#)
            guard case .string(let secret)? = made["secret"] else { return }
            _ = try await relay.admin(.get, "overview")
            _ = try await relay.admin(.delete, Self.container + "/keys/none")
            _ = try await Self.call(relay, .delete, Self.container + "/keys/x", reading)
            let audit = try await Self.call(relay, .get, "audit", reading)
            guard case .array(let entries)? = audit["entries"] else {
                Issue.record("\(audit.text)")
                return
            }
            let lines = entries.map { entry in
                ["method", "path", "status", "code"].compactMap { name in
                    entry.value(at: [name]).map { value in
                        if case .string(let text) = value { text } else { value.text }
                    }
                }.joined(separator: " ")
            }
            let path = "/admin/1/" + Self.container
            #expect(
                lines == [
                    "DELETE \(path)/keys/x 403 ACCESS_DENIED",
                    "DELETE \(path)/keys/none 404 NOT_FOUND", "POST \(path)/keys 201",
                    "POST /admin/1/tokens 201",
                ])
            #expect(entries.last?.value(at: ["caller"]) == "admin.token")
            for text in [secret, reading, TestRelay.adminToken, "hidden"] {
                #expect(!audit.text.contains(text))
            }
            let page = try await relay.admin(.get, "audit?limit=1&before=4")
            #expect(page.json.value(at: ["entries", "0", "id"]) == 3)
            #expect(page["before"] == 3)
        }
    }

    @Test func `a secret that is given as an ID does not get into the audit log`() async throws {
        try await TestRelay.with { relay in
            let secret = try await relay.makeToken(#""access":"change""#)
            for place in ["tokens/", Self.container + "/keys/"] {
                for path in [place + secret, place + secret + "/", place + "/" + secret] {
                    let refused = try await relay.admin(.delete, path)
                    // Answers are written to the log, so they must not repeat the secret.
                    #expect(refused.status == 404)
                    #expect(!refused.text.contains(String(secret.prefix(9))), "\(refused.text)")
                }
            }
            let audit = try await relay.admin(.get, "audit")
            #expect(audit.text.contains("/admin/1/tokens/\(secret.prefix(8))"), "\(audit.text)")
            #expect(!audit.text.contains(String(secret.prefix(9))), "\(audit.text)")
        }
    }

    @Test func `an unknown path is repeated to the caller and not to the log`() {
        let mapped = ErrorMapping(UnknownPath(path: "/courier/2/secret"))
        #expect(mapped.apiError.reason == "there is no call at /courier/2/secret")
        #expect(mapped.logReason == "there is no such call")
    }

    @Test func `a call without the right is refused as such whatever shard it names`()
        async throws
    {
        try await TestRelay.with { relay in
            let reading = try await relay.makeToken(#""access":"read""#)
            let path = Self.container + "/keys/x"
            let refused = try await Self.call(relay, .delete, path + "?shard=other", reading)
            #expect(refused.status == 403, "\(refused.text)")
            let audit = try await relay.admin(.get, "audit")
            #expect(audit.json.value(at: ["entries", "0", "status"]) == 403, "\(audit.text)")
            #expect(try await relay.admin(.delete, path + "?shard=other").status == 400)
        }
    }

    @Test func `the audit log is bounded by age and number`() async throws {
        try await TestRelay.with { relay in
            for _ in 0..<5 { _ = try await relay.admin(.delete, Self.container + "/keys/none") }
            let store = relay.store
            let long = TestRelay.now.advanced(by: .seconds(-60))
            #expect(try await store.pruneAudit(before: long, most: 100) == 0)
            #expect(try await store.pruneAudit(before: long, most: 2) == 3)
            let later = TestRelay.now.advanced(by: .seconds(1))
            #expect(try await store.pruneAudit(before: later, most: 100) == 2)
            #expect(try await store.auditEntries(before: nil, limit: 9) == [])
        }
    }

    @Test func `a caller that fills the audit log displaces only its own entries`() async throws {
        try await TestRelay.with { relay in
            let reading = try await relay.makeToken(#""access":"read""#)
            _ = try await relay.admin(.delete, Self.container + "/keys/none")
            for _ in 0..<10 {
                _ = try await Self.call(relay, .delete, Self.container + "/keys/none", reading)
            }
            let long = TestRelay.now.advanced(by: .seconds(-60))
            #expect(try await relay.store.pruneAudit(before: long, most: 5) == 7)
            let callers = try await relay.store.auditEntries(before: nil, limit: 99).map(\.caller)
            #expect(callers.count { $0 == "admin.token" } == 2)
            #expect(callers.count == 5)
        }
    }

    @Test func `a key set without issuer and audience causes a warning`() async throws {
        try await TestRelay.with { relay in
            func set(_ members: JSONObject) async throws -> JSONValue? {
                var tokens: JSONObject = ["keySet": .string(TestKeys.rsaKeySet)]
                for member in members.members { tokens[member.name] = member.value }
                let body: JSONValue = ["userTokens": .object(tokens)]
                return try await relay.admin(.patch, Self.container, body.text)["warnings"]
            }
            let both =
                "userTokens: without issuer and audience, the relay also accepts tokens that the "
                + "identity provider issued to other applications"
            #expect(try await set([:]) == [.string(both)])
            let one = try await set(["issuer": "https://id.example"])
            #expect(one == [.string(both.replacing("issuer and audience", with: "audience"))])
            #expect(try await set(["issuer": "https://id.example", "audience": "art"]) == nil)
        }
    }

    @Test func `an audit log far beyond its bound is pruned to the bound`() async throws {
        try await TestRelay.with { relay in
            let store = relay.store
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for number in 0..<1300 {
                    tasks.addTask {
                        let caller = number.isMultiple(of: 13) ? "few" : "many"
                        _ = try await store.beginAudit(
                            AuditEntry(
                                at: TestRelay.now, caller: caller, method: "GET", path: "/x"))
                    }
                }
                try await tasks.waitForAll()
            }
            let long = TestRelay.now.advanced(by: .seconds(-60))
            let before = try await store.auditEntries(before: nil, limit: 2000)
            #expect(try await store.pruneAudit(before: long, most: 300) == 1000)
            let left = try await store.auditEntries(before: nil, limit: 2000)
            #expect(left.count { $0.caller == "few" } == 100)
            let newest = before.filter { $0.caller == "many" }.prefix(200).map(\.id)
            #expect(left.filter { $0.caller == "many" }.map(\.id) == Array(newest))
            #expect(try await store.pruneAudit(before: long, most: 300) == 0)
        }
    }

    @Test(arguments: [
        (#"{"kty":"RSA","e":"AQAB","n":"AA","d":"c2VjcmV0"}"#, "d"),
        (#"{"kty":"RSA","e":"AQAB","n":"AA","qi":"c2VjcmV0"}"#, "qi"),
        (#"{"kty":"oct","k":"c2VjcmV0"}"#, "k"),
    ])
    func `a private key in a key set is refused and not repeated`(
        key: String, member: String
    ) async throws {
        try await TestRelay.with { relay in
            let both = TestKeys.rsaKeySet.replacing("]}", with: "," + key + "]}")
            let whole = try JSONValue(parsing: both)
            for set in [.string(both), whole] as [JSONValue] {
                let body: JSONValue = ["userTokens": ["keySet": set]]
                let refused = try await relay.admin(.patch, Self.container, body.text)
                #expect(refused.status == 400)
                let reason = "userTokens.keySet: keys[1].\(member) is the secret part of a key"
                #expect(refused.text.contains(reason), "\(refused.text)")
                #expect(!refused.text.contains("c2VjcmV0"))
            }
            // Such a key set is refused by now, but a store may hold one that was saved earlier.
            var settings = try #require(try await relay.store.container(TestRelay.container))
            settings.userTokens = UserTokenSettings(
                keySet: both, issuer: "https://id.example", audience: "art")
            try await relay.store.save(settings, at: TestRelay.now)
            let shown = try await relay.admin(.get, Self.container)
            #expect(shown.text.contains(TestKeys.rsaModulus))
            #expect(shown.text.contains("keySet.keys[1].\(member) is the secret part of a key"))
            #expect(!shown.text.contains("c2VjcmV0"))
            let summary = try await relay.admin(.get, Self.container + "/summary")
            #expect(!summary.text.contains("c2VjcmV0"))
        }
    }

    @Test(arguments: ["x", "hunter2", String(repeating: "a", count: 23)])
    func `a short token is refused and not repeated`(token: String) async throws {
        do {
            _ = try RelayConfiguration(
                try await ConfigurationValues.gather(
                    arguments: [], environment: ["BELFRY_ADMIN_TOKEN": token]))
            Issue.record("it was taken")
        } catch let error as ConfigurationError {
            #expect(
                error.description.contains(
                    "admin.token (--admin-token, BELFRY_ADMIN_TOKEN): the value must be a text of "
                        + "24 bytes or more"))
        }
    }
}
