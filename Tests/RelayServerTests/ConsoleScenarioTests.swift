import Foundation
import HTTPTypes
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import RelayServer

/// The console's files and its sessions.
@Suite struct ConsoleScenarioTests {
    /// A clock that tests move.
    final class Moment: Sendable {
        private let moment = Mutex(TestRelay.now)

        var now: Timestamp { moment.withLock { $0 } }

        func go(_ seconds: Int64) {
            moment.withLock { $0 = $0.advanced(by: .seconds(seconds)) }
        }
    }

    private static let host = "localhost:8081"

    /// Makes a call with a session's cookie, as the console's page does.
    private static func call(
        _ relay: TestRelay, _ method: HTTPRequest.Method, _ path: String, _ cookie: String,
        adding headers: [String: String] = ["X-Belfry-Console": "1"]
    ) async throws -> TestRelay.Answer {
        try await relay.call(
            method, "/admin/1/\(path)", headers: headers.merging(["Cookie": cookie]) { $1 },
            body: method == .get ? nil : "{}")
    }

    /// Signs in, and returns the cookie as a browser sends it back.
    private static func signIn(
        _ relay: TestRelay, _ token: String = TestRelay.adminToken
    ) async throws -> String {
        let answer = try await relay.call(
            .post, "/admin/1/session", headers: ["Authorization": "Bearer \(token)"])
        #expect(answer.status == 201, "\(answer.text)")
        let cookie = try #require(answer.headers[.setCookie])
        return String(cookie.prefix { $0 != ";" })
    }

    // MARK: Files

    @Test func `every file of the console's folder is served with its type`() async throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/RelayServer/Console/Pages").standardized
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(Set(names) == Set(ConsoleFiles.all.map(\.name)))
        #expect(ConsoleFiles.all.allSatisfy { $0.type != "application/octet-stream" })
        for file in ConsoleFiles.all {
            let bytes = try Data(contentsOf: folder.appending(path: file.name))
            #expect(Array(bytes) == file.bytes, "\(file.name)")
        }
        // Compressed, a browser loads less than half of it; see `GzipFileTests`.
        #expect(ConsoleFiles.all.reduce(0) { $0 + $1.bytes.count } <= 240_000)
    }

    @Test func `the page is served at every path without a file, with a strict policy`()
        async throws
    {
        try await TestRelay.with { relay in
            let page = try await relay.call(.get, "/console/")
            #expect(page.status == 200)
            #expect(page.headers[.contentType] == "text/html; charset=utf-8")
            #expect(
                page.headers[.contentSecurityPolicy]
                    == "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
                    + "data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
                    + "frame-ancestors 'none'")
            #expect(page.headers[.xContentTypeOptions] == "nosniff")
            #expect(page.headers[.referrerPolicy] == "no-referrer")
            #expect(page.headers[.cacheControl] == "no-cache")
            #expect(page.headers[.accessControlAllowOrigin] == nil)
            for place in ["/console", "/console/tail?container=a.b", "/console/users/alice"] {
                #expect(try await relay.call(.get, place).text == page.text)
            }
            let tag = try #require(page.headers[.eTag])
            let again = try await relay.call(
                .get, "/console/", headers: ["If-None-Match": "\"x\", W/\(tag)"])
            #expect(again.status == 304)
            #expect(again.text.isEmpty)
            #expect(again.headers[.contentLength] == page.headers[.contentLength])
            let head = try await relay.call(.head, "/console/index.html")
            #expect(head.status == 200 && head.text.isEmpty)
            let missing = try await relay.call(.get, "/console/none.js")
            #expect(missing.status == 404)
            #expect(missing["reason"] == "the console has no file \"none.js\"")
            #expect(try await relay.call(.get, "/console/users/a.b").status == 404)
        }
    }

    @Test func `the web client is served compressed and revalidated`() async throws {
        try await TestRelay.with { relay in
            let small = try await relay.call(
                .get, "/live/client.js", headers: ["Accept-Encoding": "gzip, br"])
            #expect(small.status == 200)
            #expect(small.headers[.contentEncoding] == "gzip")
            #expect(small.headers[.contentType] == "text/javascript; charset=utf-8")
            let size = try #require(small.headers[.contentLength].flatMap { Int($0) })
            #expect(size <= 12_000, "every page loads it")
            let tag = try #require(small.headers[.eTag])
            let again = try await relay.call(
                .get, "/live/client.js",
                headers: ["Accept-Encoding": "gzip", "If-None-Match": tag])
            #expect(again.status == 304 && again.text.isEmpty)
            for (path, type) in [
                ("/live", "text/html"), ("/live/client.d.ts", "text/plain"),
                ("/live/live-page.js", "text/javascript"),
            ] {
                let plain = try await relay.call(.get, path)
                #expect(plain.headers[.contentType] == "\(type); charset=utf-8")
                #expect(plain.headers[.contentEncoding] == nil)
                #expect(plain.headers[.cacheControl] == "no-cache")
                #expect(plain.headers[.eTag] != nil)
            }
        }
    }

    @Test func `browsers get compressed files, each form with its own tag`() async throws {
        try await TestRelay.with { relay in
            let plain = try await relay.call(.get, "/console/console.js")
            let small = try await relay.call(
                .get, "/console/console.js", headers: ["Accept-Encoding": "br;q=1, GZIP;q=0.5"])
            #expect(small.headers[.contentEncoding] == "gzip")
            #expect(plain.headers[.contentEncoding] == nil)
            #expect(small.headers[.contentType] == plain.headers[.contentType])
            #expect([small, plain].allSatisfy { $0.headers[.vary] == "Accept-Encoding" })
            let size = try #require(small.headers[.contentLength].flatMap { Int($0) })
            #expect(size * 2 < plain.text.utf8.count)
            let tag = try #require(small.headers[.eTag])
            #expect(tag != plain.headers[.eTag])
            let again = try await relay.call(
                .get, "/console/console.js",
                headers: ["Accept-Encoding": "gzip", "If-None-Match": tag])
            #expect(again.status == 304)
            #expect(again.headers[.contentLength] == small.headers[.contentLength])
            let other = try await relay.call(
                .get, "/console/console.js", headers: ["If-None-Match": tag])
            #expect(other.status == 200, "the other form has another name")
            for word in ["gzip;q=0, *", "identity", "gzip; q=0.0"] {
                let answer = try await relay.call(
                    .get, "/console/console.js", headers: ["Accept-Encoding": word])
                #expect(answer.headers[.contentEncoding] == nil, "\(word)")
            }
        }
    }

    @Test func `the bare address redirects browsers and answers programs as before`()
        async throws
    {
        try await TestRelay.with { relay in
            let browser = try await relay.call(
                .get, "/", headers: ["Accept": "text/html,application/xhtml+xml"])
            #expect(browser.status == 302)
            #expect(browser.headers[.location] == "/console/")
            #expect(try await relay.call(.get, "/")["service"] == "belfry")
        }
        var off = ConsoleSettings()
        off.isEnabled = false
        try await TestRelay.with(adjusting: {
            $0.console = ConsoleSessions(off, randomBytes: $0.randomBytes)
        }) { relay in
            #expect(try await relay.call(.get, "/console/").status == 404)
            let browser = try await relay.call(.get, "/", headers: ["Accept": "text/html"])
            #expect(browser["service"] == "belfry")
            let refused = try await relay.admin(.post, "session")
            #expect(refused.status == 404)
            #expect(refused["reason"] == "the console is switched off (console.enabled)")
        }
    }

    // MARK: Signing in

    @Test func `a token becomes an HttpOnly cookie that ends with signing out`()
        async throws
    {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .post, "/admin/1/session",
                headers: ["Authorization": "Bearer \(TestRelay.adminToken)"])
            #expect(answer.status == 201)
            #expect(!answer.text.contains(TestRelay.adminToken))
            let cookie = try #require(answer.headers[.setCookie])
            let form = #/belfry-console=[0-9a-f]{64}; Path=\/admin\/1; HttpOnly; SameSite=Strict/#
            #expect(cookie.wholeMatch(of: form) != nil, "\(cookie)")
            let pair = String(cookie.prefix { $0 != ";" })
            let shown = try await Self.call(relay, .get, "session", pair)
            #expect(shown["label"] == "admin.token" && shown["access"] == "main")
            #expect(shown["signedIn"] == true)
            #expect(shown["endsAt"] == "2016-01-26T10:15:43.000Z", "\(shown.text)")
            #expect(shown["idleEndsAt"] == "2016-01-25T23:15:43.000Z", "\(shown.text)")
            #expect(try await Self.call(relay, .get, "overview", "a=b; \(pair)").status == 200)
            let out = try await Self.call(relay, .delete, "session", pair)
            #expect(out["signedOut"] == true)
            #expect(
                out.headers[.setCookie]
                    == "belfry-console=; Max-Age=0; Path=/admin/1; HttpOnly; SameSite=Strict")
            let refused = try await Self.call(relay, .get, "overview", pair)
            #expect(refused.status == 401)
            #expect(
                refused["reason"]
                    == "session: it has ended or the relay was restarted; sign in again")
            let audit = try await relay.admin(.get, "audit")
            #expect(audit.json.value(at: ["entries", "0", "method"]) == "DELETE")
            #expect(audit.json.value(at: ["entries", "1", "path"]) == "/admin/1/session")
            #expect(audit.json.value(at: ["entries", "1", "caller"]) == "admin.token")
        }
    }

    @Test func `over TLS the cookie is secure`() async throws {
        try await TestRelay.with(adjusting: { $0.scheme = "https" }) { relay in
            let answer = try await relay.admin(.post, "session")
            let cookie = try #require(answer.headers[.setCookie])
            #expect(cookie.hasSuffix("; HttpOnly; SameSite=Strict; Secure"))
        }
    }

    @Test func `two relays on one host have different cookies`() {
        var request = RelayRequest(
            method: "GET", target: "/", uuid: "", receivedAt: TestRelay.now)
        request.authority = Self.host
        request.headers[.cookie] = "belfry-console-8082=ab; belfry-console-8081=cd"
        let cookie = ConsoleCookie(scheme: "http")
        #expect(cookie.secret(in: request) == "cd")
        request.authority = "belfry.example"
        #expect(cookie.secret(in: request) == nil)
        var answer = RelayAnswer(status: 200)
        cookie.give("ef", to: request, in: &answer)
        #expect(answer.headers[.setCookie]?.hasPrefix("belfry-console=ef;") == true)
    }

    @Test func `a cookie names the shard of its session`() {
        var request = RelayRequest(
            method: "GET", target: "/", uuid: "", receivedAt: TestRelay.now)
        request.authority = "belfry.example"
        let cookie = ConsoleCookie(scheme: "http", shard: "belfry_b")
        var answer = RelayAnswer(status: 200)
        cookie.give("ef", to: request, in: &answer)
        #expect(answer.headers[.setCookie]?.hasPrefix("belfry-console=belfry_b.ef;") == true)
        request.headers[.cookie] = "belfry-console=belfry_b.ef"
        #expect(cookie.secret(in: request) == "ef")
        request.headers[.cookie] = "belfry-console=belfry_b."
        #expect(cookie.secret(in: request) == nil)
    }

    @Test func `a wrong token starts no session, and guesses are slowed`() async throws {
        try await TestRelay.with { relay in
            let wrong = try await relay.call(
                .post, "/admin/1/session", headers: ["Authorization": "Bearer guessed"])
            #expect(wrong.status == 401)
            #expect(wrong["reason"] == "admin token: it is not a token of this relay")
            #expect(wrong.headers[.setCookie] == nil)
            let none = try await relay.call(.post, "/admin/1/session")
            #expect(none["reason"] == "admin token: Authorization: Bearer is missing")
            // A session cannot start another session.
            let cookie = try await Self.signIn(relay)
            #expect(try await Self.call(relay, .post, "session", cookie).status == 401)
        }
    }

    @Test(arguments: [
        (["Sec-Fetch-Site": "cross-site", "X-Belfry-Console": "1"], 403),
        (["Sec-Fetch-Site": "same-site", "X-Belfry-Console": "1"], 403),
        (["Sec-Fetch-Site": "none", "X-Belfry-Console": "1"], 403),
        (["Sec-Fetch-Site": "same-origin"], 403),
        (["Origin": "http://evil.example", "X-Belfry-Console": "1"], 403),
        (["Origin": "null", "X-Belfry-Console": "1"], 403),
        ([:], 403),
        (["Sec-Fetch-Site": "same-origin", "X-Belfry-Console": "1"], 200),
        (["Origin": "http://localhost", "X-Belfry-Console": "1"], 200),
        (["X-Belfry-Console": "1"], 200),
    ]) func `changes are only accepted from the console's own page`(
        headers: [String: String], status: Int
    ) async throws {
        try await TestRelay.with { relay in
            let cookie = try await Self.signIn(relay)
            let path = "containers/iCloud.com.example.Art/development/resume"
            let answer = try await Self.call(relay, .post, path, cookie, adding: headers)
            #expect(answer.status == status, "\(headers) \(answer.text)")
        }
    }

    @Test func `another site can neither read with a session nor sign anybody in`() async throws {
        try await TestRelay.with { relay in
            let cookie = try await Self.signIn(relay)
            for (site, status) in [("cross-site", 403), ("none", 200), ("same-origin", 200)] {
                let answer = try await Self.call(
                    relay, .get, "overview", cookie, adding: ["Sec-Fetch-Site": site])
                #expect(answer.status == status, "\(site)")
            }
            let signing = try await relay.call(
                .post, "/admin/1/session",
                headers: [
                    "Authorization": "Bearer \(TestRelay.adminToken)",
                    "Sec-Fetch-Site": "cross-site", "X-Belfry-Console": "1",
                ])
            #expect(signing.status == 403)
            #expect(signing.headers[.setCookie] == nil)
        }
    }

    // MARK: Whose session

    @Test func `a session may do what its token may and ends with it`() async throws {
        try await TestRelay.with { relay in
            let place = #""container":"iCloud.com.example.Art","environment":"development""#
            let reading = try await relay.makeToken(#""access":"read""#)
            let own = try await relay.makeToken(#""access":"change",\#(place)"#)
            let reader = try await Self.signIn(relay, reading)
            let keeper = try await Self.signIn(relay, own)
            let resume = "containers/iCloud.com.example.Art/development/resume"
            #expect(try await Self.call(relay, .get, "overview", reader).status == 200)
            let refused = try await Self.call(relay, .post, resume, reader)
            #expect(refused.status == 403)
            #expect(refused["reason"] == "this token may only read")
            #expect(try await Self.call(relay, .post, resume, keeper).status == 200)
            #expect(try await Self.call(relay, .get, "overview", keeper).status == 403)
            let shown = try await Self.call(relay, .get, "console", keeper)
            #expect(shown.status == 200, "\(shown.text)")
            #expect(
                shown.json.value(at: ["session", "container"]) == "iCloud.com.example.Art")
            let audit = try await relay.admin(.get, "audit")
            guard case .string(let caller)? = audit.json.value(at: ["entries", "0", "caller"])
            else { return }
            #expect(caller.hasPrefix("t ("))
            for token in try await relay.store.adminTokens() where token.mayChange {
                #expect(try await relay.admin(.delete, "tokens/\(token.id)").status == 200)
            }
            let ended = try await Self.call(relay, .post, resume, keeper)
            #expect(ended.status == 401)
            #expect(ended["reason"] == "session: its token is no longer valid: it was revoked")
            #expect(try await Self.call(relay, .get, "overview", reader).status == 200)
        }
    }

    @Test func `a session ends when idle, and after its maximum time`()
        async throws
    {
        let moment = Moment()
        try await TestRelay.with(adjusting: { $0.now = { moment.now } }) { relay in
            let idle = try await Self.signIn(relay)
            moment.go(3599)
            #expect(try await Self.call(relay, .get, "session", idle).status == 200)
            moment.go(3600)
            #expect(try await Self.call(relay, .get, "session", idle).status == 401)
            let busy = try await Self.signIn(relay)
            for _ in 0..<23 {
                moment.go(1800)
                #expect(try await Self.call(relay, .get, "session", busy).status == 200)
            }
            moment.go(1800)
            #expect(try await Self.call(relay, .get, "session", busy).status == 401)
        }
    }

    @Test func `a code signs in once with the rights of its token`() async throws {
        let moment = Moment()
        try await TestRelay.with(adjusting: { $0.now = { moment.now } }) { relay in
            let reading = try await relay.makeToken(#""access":"read""#)
            let made = try await relay.call(
                .post, "/admin/1/session/codes", headers: ["Authorization": "Bearer \(reading)"])
            #expect(made.status == 201, "\(made.text)")
            guard case .string(let code)? = made["code"] else { return }
            #expect(made["path"] == .string("/console/#code=\(code)"))
            // The code is good for nothing else.
            let other = try await relay.call(
                .get, "/admin/1/overview", headers: ["Authorization": "Bearer \(code)"])
            #expect(other.status == 401)
            let cookie = try await Self.signIn(relay, code)
            #expect(try await Self.call(relay, .get, "session", cookie)["access"] == "read")
            // A session cannot create a code, which would outlive it.
            let more = try await Self.call(relay, .post, "session/codes", cookie)
            #expect(more.status == 403, "\(more.text)")
            let again = try await relay.call(
                .post, "/admin/1/session", headers: ["Authorization": "Bearer \(code)"])
            #expect(again.status == 401)
            guard case .string(let late)? = try await relay.admin(.post, "session/codes")["code"]
            else { return }
            moment.go(600)
            let over = try await relay.call(
                .post, "/admin/1/session", headers: ["Authorization": "Bearer \(late)"])
            #expect(over.status == 401)
        }
    }
}
