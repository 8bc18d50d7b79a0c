import Crypto
import Foundation
import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// What change sources post, from the verification to the log, and what is parked.
@Suite struct ChangeScenarioTests {
    private static let sources = "containers/iCloud.com.example.Art/development/sources"
    private static let parked = "containers/iCloud.com.example.Art/development/changes/parked"
    private static let path = "/changes/1/iCloud.com.example.Art/development"
    private static let change =
        #"{"operation":"create","recordType":"Artwork","recordName":"a-1","after":{"artist":"#
        + #""artist-1"}}"#

    /// Creates a source whose secret the relay makes; returns the secret.
    private static func signedSource(_ relay: TestRelay) async throws -> String {
        let made = try await relay.admin(.put, sources + "/app", #"{"preset":"belfry"}"#)
        #expect(made.status == 201, "\(made.text)")
        guard case .string(let secret)? = made["secret"] else { return "" }
        return secret
    }

    private static func signed(
        _ body: String, id: String, secret: String, seconds: Int64 = 0
    ) -> [String: String] {
        let timestamp = String(TestRelay.now.seconds + seconds)
        let key = Base64.decode(secret.dropFirst("whsec_".count)) ?? []
        let code = HMAC<SHA256>.authenticationCode(
            for: Data("\(id).\(timestamp).\(body)".utf8), using: SymmetricKey(data: key))
        return [
            "webhook-id": id, "webhook-timestamp": timestamp,
            "webhook-signature": "v1," + Base64.encode(Array(code)),
        ]
    }

    private func statuses(_ answer: TestRelay.Answer) -> [JSONValue?] {
        guard case .array(let results)? = answer["results"] else { return [] }
        return results.map { if case .object(let object) = $0 { object["status"] } else { nil } }
    }

    @Test func `a change is in the log once before the answer`() async throws {
        try await TestRelay.with { relay in
            let secret = try await Self.signedSource(relay)
            let headers = Self.signed(Self.change, id: "m1", secret: secret)
            let before = try await relay.store.head()
            for expected in ["appended", "duplicate"] {
                let answer = try await relay.call(
                    .post, Self.path + "/app", headers: headers, body: Self.change)
                #expect(answer.status == 200, "\(answer.text)")
                #expect(statuses(answer) == [.string(expected)])
            }
            let entries = try await relay.store.entries(after: before, limit: 10)
            #expect(entries.count == 1)
            let other = Self.change.replacing("artist-1", with: "artist-2")
            let conflict = try await relay.call(
                .post, Self.path + "/app",
                headers: Self.signed(other, id: "m1", secret: secret), body: other)
            #expect(conflict.status == 409)
            #expect(conflict["serverErrorCode"] == "CONFLICT")
            #expect(statuses(conflict) == ["conflict"])
        }
    }

    @Test func `a webhook that fails verification changes nothing`() async throws {
        try await TestRelay.with { relay in
            let secret = try await Self.signedSource(relay)
            let stale = Self.signed(Self.change, id: "m1", secret: secret, seconds: -301)
            let forged = Self.signed(
                Self.change, id: "m1",
                secret: "whsec_" + Base64.encode(Array(repeating: 1, count: 32)))
            let cases: [([String: String], String)] = [
                ([:], "the header webhook-id is missing"),
                (
                    stale,
                    "the timestamp in webhook-timestamp is more than 300 seconds old: check the "
                        + "sender's clock"
                ),
                (
                    forged,
                    "no signature in webhook-signature matches the body and a valid secret of this "
                        + "source: check that the sender has the secret that belfry sources set or "
                        + "rotate showed last, that the key is the part after whsec_, decoded from "
                        + "Base64, and that nothing rewrites the body on its way"
                ),
            ]
            let before = try await relay.store.head()
            for (headers, reason) in cases {
                let answer = try await relay.call(
                    .post, Self.path + "/app", headers: headers, body: Self.change)
                #expect(answer.status == 401)
                #expect(answer["serverErrorCode"] == "AUTHENTICATION_FAILED")
                #expect(answer["reason"] == .string(reason))
            }
            let unknown = try await relay.call(.post, Self.path + "/other", body: Self.change)
            #expect(unknown.status == 404)
            let after = try await relay.store.head()
            #expect(after == before)
        }
    }

    @Test func `unverified webhooks do not use up a source's rate`() async throws {
        try await TestRelay.with { relay in
            let secret = try await Self.signedSource(relay)
            let limited = try await relay.admin(
                .patch, "containers/iCloud.com.example.Art/development", #"{"rates":{"key":1}}"#)
            #expect(limited.status == 200, "\(limited.text)")
            let forged = Self.signed(
                Self.change, id: "m0",
                secret: "whsec_" + Base64.encode(Array(repeating: 1, count: 32)))
            for _ in 0..<10 {
                let answer = try await relay.call(
                    .post, Self.path + "/app", headers: forged, body: Self.change)
                #expect(answer.status == 401, "\(answer.text)")
            }
            var statuses: [Int] = []
            for number in 1...400 where !statuses.contains(429) {
                let answer = try await relay.call(
                    .post, Self.path + "/app",
                    headers: Self.signed(Self.change, id: "m\(number)", secret: secret),
                    body: Self.change)
                statuses.append(answer.status)
            }
            #expect(statuses.first == 200)
            #expect(statuses.last == 429)
        }
    }

    @Test func `a webhook with another method is recorded with advice`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(.put, Self.sources + "/shop", #"{"preset":"supabase"}"#)
            let reason: JSONValue = .string(
                "GET is not allowed here; allowed: OPTIONS, POST; changes must be posted with the "
                    + "method POST; set the webhook's method to POST: with GET Supabase sends no "
                    + "row")
            let answer = try await relay.call(.get, Self.path + "/shop")
            #expect(answer.status == 405)
            #expect(answer.headers[.allow] == "OPTIONS, POST")
            #expect(answer["reason"] == reason)
            let shown = try await relay.admin(.get, Self.sources + "/shop")
            #expect(shown.json.value(at: ["webhooks", "refused"]) == 1)
            #expect(shown.json.value(at: ["webhooks", "lastReason"]) == reason)
            // Nothing is recorded for a source that does not exist.
            let none = try await relay.call(.get, Self.path + "/none")
            #expect(none.status == 405)
            let listed = try await relay.admin(
                .get, "containers/iCloud.com.example.Art/development/refusedWebhooks")
            guard case .array(let refusals)? = listed["refusals"] else {
                Issue.record("\(listed.text)")
                return
            }
            #expect(refusals.map { $0.value(at: ["requestID"]) } == [answer["uuid"]])
        }
    }

    @Test func `a webhook refused before its body is read is recorded`() async throws {
        try await TestRelay.with(limits: RequestLimits(webhookBytes: 100)) { relay in
            _ = try await relay.admin(
                .put, Self.sources + "/shop",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            let answer = try await relay.call(
                .post, Self.path + "/shop", body: String(repeating: " ", count: 101))
            #expect(answer.status == 413)
            let shown = try await relay.admin(.get, Self.sources + "/shop")
            #expect(shown.json.value(at: ["webhooks", "refused"]) == 1)
            #expect(
                shown.json.value(at: ["webhooks", "lastReason"])
                    == "the body is larger than 100 bytes")
        }
    }

    @Test func `a long reason is truncated`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(
                .put, Self.sources + "/shop",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            let name = String(repeating: "n", count: 100_000)
            let answer = try await relay.call(
                .post, Self.path + "/shop", body: #"{"\#(name)":1}"#)
            #expect(answer.status == 422)
            let listed = try await relay.admin(
                .get, "containers/iCloud.com.example.Art/development/refusedWebhooks")
            #expect(listed.text.contains("nnn") && listed.text.utf8.count < 5000)
            let shown = try await relay.admin(.get, Self.sources + "/shop")
            #expect(shown.json.value(at: ["webhooks", "refused"]) == 1)
            #expect(shown.text.utf8.count < 20_000)
        }
    }

    @Test func `refused webhooks are listed and counted for each source`() async throws {
        try await TestRelay.with { relay in
            let secret = try await Self.signedSource(relay)
            let good = Self.signed(Self.change, id: "m1", secret: secret)
            let accepted = try await relay.call(
                .post, Self.path + "/app", headers: good, body: Self.change)
            #expect(accepted.status == 200)
            let forged = try await relay.call(.post, Self.path + "/app", body: Self.change)
            let wrong = "{}"
            let refused = try await relay.call(
                .post, Self.path + "/app",
                headers: Self.signed(wrong, id: "m2", secret: secret), body: wrong)
            #expect(refused.status == 422)
            let unknown = try await relay.call(.post, Self.path + "/other", body: Self.change)
            let listed = try await relay.admin(
                .get, "containers/iCloud.com.example.Art/development/refusedWebhooks")
            guard case .array(let refusals)? = listed["refusals"], refusals.count == 3 else {
                Issue.record("\(listed.text)")
                return
            }
            #expect(refusals.map { $0.value(at: ["status"]) } == [404, 422, 401])
            #expect(refusals[0].value(at: ["source"]) == "other")
            #expect(refusals[0].value(at: ["requestID"]) == unknown["uuid"])
            #expect(refusals[2].value(at: ["reason"]) == "the header webhook-id is missing")
            #expect(refusals[2].value(at: ["requestID"]) == forged["uuid"])
            let shown = try await relay.admin(.get, Self.sources + "/app")
            #expect(shown.json.value(at: ["webhooks", "accepted"]) == 1)
            #expect(shown.json.value(at: ["webhooks", "refused"]) == 2)
            let moment = JSONValue.string(TestRelay.now.iso8601)
            #expect(shown.json.value(at: ["webhooks", "lastAccepted"]) == moment)
            #expect(
                shown.json.value(at: ["webhooks", "lastReason"])
                    == "operation: is required")
            let overview = try await relay.admin(.get, "overview")
            #expect(overview.json.value(at: ["containers", "0", "webhooks", "refused"]) == 2)
            let metrics = try await relay.call(.get, "/metrics")
            #expect(
                metrics.text.contains(
                    #"belfry_webhooks_total{container="iCloud.com.example.Art","#
                        + #"environment="development",outcome="refused",source="app"} 2"#),
                "\(metrics.text)")
            _ = try await relay.admin(.delete, Self.sources + "/app")
            let fresh = try await relay.admin(.put, Self.sources + "/app", #"{"preset":"belfry"}"#)
            #expect(fresh.json.value(at: ["webhooks", "refused"]) == 0)
        }
    }

    @Test func `a save changes only named members, and a rotation keeps the former secret`()
        async throws
    {
        try await TestRelay.with { relay in
            let secret = try await Self.signedSource(relay)
            let again = try await relay.admin(
                .put, Self.sources + "/app", #"{"mapping":{"owner":{"header":"X-Owner"}}}"#)
            #expect(again.status == 200, "\(again.text)")
            #expect(again["secret"] == nil)
            #expect(again["preset"] == "belfry")
            let rotated = try await relay.admin(
                .post, Self.sources + "/app/rotate", #"{"graceSeconds":600}"#)
            #expect(rotated.status == 200, "\(rotated.text)")
            guard case .string(let new)? = rotated["secret"] else { return }
            #expect(new != secret)
            #expect(
                rotated.json.value(at: ["verification", "secrets", "0", "until"])
                    == .integer(TestRelay.now.milliseconds + 600_000))
            #expect(!rotated.text.contains(secret))
            for (id, key) in [("m1", secret), ("m2", new)] {
                let headers = Self.signed(Self.change, id: id, secret: key)
                let answer = try await relay.call(
                    .post, Self.path + "/app",
                    headers: headers.merging(["X-Owner": "u-1"]) { own, _ in own },
                    body: Self.change)
                #expect(answer.status == 200, "\(answer.text)")
            }
            let ended = try await relay.admin(
                .post, Self.sources + "/app/rotate", #"{"graceSeconds":0}"#)
            guard case .string(let last)? = ended["secret"] else { return }
            for (key, status) in [(secret, 401), (new, 401), (last, 200)] {
                let headers = Self.signed(Self.change, id: "m3", secret: key)
                let answer = try await relay.call(
                    .post, Self.path + "/app",
                    headers: headers.merging(["X-Owner": "u-1"]) { own, _ in own },
                    body: Self.change)
                #expect(answer.status == status, "\(answer.text)")
            }
            let none = try await relay.admin(.post, Self.sources + "/other/rotate", "{}")
            #expect(none.status == 404)
            let long = try await relay.admin(
                .post, Self.sources + "/app/rotate", #"{"graceSeconds":9999999}"#)
            #expect(long["reason"] == "graceSeconds: must be 0 to 2592000")
        }
    }

    @Test func `a sender of CloudEvents may ask for permission to post`() async throws {
        try await TestRelay.with { relay in
            for preset in ["cloudevents", "hasura"] {
                _ = try await relay.admin(
                    .put, Self.sources + "/\(preset)", #"{"preset":"\#(preset)"}"#)
            }
            let asked = ["WebHook-Request-Origin": "events.example", "WebHook-Request-Rate": "120"]
            let answer = try await relay.call(
                .options, Self.path + "/cloudevents", headers: asked)
            #expect(answer.status == 200)
            #expect(answer.headers[.named("WebHook-Allowed-Origin")] == "events.example")
            #expect(answer.headers[.named("WebHook-Allowed-Rate")] == "120")
            #expect(answer.headers[.allow] == "OPTIONS, POST")
            let other = try await relay.call(.options, Self.path + "/hasura", headers: asked)
            #expect(other.headers[.named("WebHook-Allowed-Origin")] == nil)
            let unknown = try await relay.call(.options, Self.path + "/none", headers: asked)
            #expect(unknown.status == 404)
            let page = try await relay.call(.options, Self.path + "/cloudevents")
            #expect(page.status == 204)
            #expect(page.headers[.accessControlAllowMethods] == "OPTIONS, POST")
        }
    }

    @Test func `an event of another type is ignored and counted`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(
                .put, Self.sources + "/ce",
                #"{"preset":"cloudevents","verification":{"scheme":"none"}}"#)
            let answer = try await relay.call(
                .post, Self.path + "/ce",
                body: #"{"specversion":"1.0","id":"1","source":"/s","type":"com.example.paid"}"#)
            #expect(answer.status == 200, "\(answer.text)")
            #expect(statuses(answer) == ["ignored"])
            let shown = try await relay.admin(.get, Self.sources + "/ce")
            #expect(shown.json.value(at: ["webhooks", "ignored"]) == 1)
        }
    }

    @Test func `stale changes are counted for their source`()
        async throws
    {
        try await TestRelay.with { relay in
            _ = try await relay.admin(
                .put, Self.sources + "/shop",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            for version in [9, 3, 4] {
                let answer = try await relay.call(
                    .post, Self.path + "/shop",
                    body: #"{"operation":"update","recordType":"Artwork","recordName":"a-1","#
                        + #""after":{"title":"Sea"},"version":\#(version)}"#)
                #expect(statuses(answer) == [version == 9 ? "appended" : "stale"])
            }
            let shown = try await relay.admin(.get, Self.sources + "/shop")
            #expect(shown.json.value(at: ["webhooks", "older"]) == 2)
            #expect(shown.json.value(at: ["webhooks", "olderPercent"]) == 66)
        }
    }

    @Test func `one bad change of a batch is refused by itself, and the status says so`()
        async throws
    {
        try await TestRelay.with { relay in
            let secret = try await Self.signedSource(relay)
            let body =
                #"[\#(Self.change),{"operation":"create"},"#
                + #"\#(Self.change.replacing("a-1", with: "a-2"))]"#
            let answer = try await relay.call(
                .post, Self.path + "/app", headers: Self.signed(body, id: "m1", secret: secret),
                body: body)
            #expect(answer.status == 422, "\(answer.text)")
            #expect(statuses(answer) == ["appended", "refused", "appended"])
            let reason: JSONValue = "1 of 3 changes is refused: [1].recordType: is required"
            #expect(answer["reason"] == reason)
            // The caller gets no reason; the operator finds it in the list of refused webhooks.
            let refused = try await relay.admin(
                .get, "containers/iCloud.com.example.Art/development/refusedWebhooks")
            #expect(refused.json.value(at: ["refusals", "0", "reason"]) == reason)
        }
    }

    @Test func `a change that cannot be mapped is parked, listed, replayed and removed`()
        async throws
    {
        try await TestRelay.with { relay in
            let wrong =
                #"{"preset":"supabase","verification":{"scheme":"none"},"onUnmappable":"park"#
                + #"","mapping":{"key":["uid"]}}"#
            let made = try await relay.admin(.put, Self.sources + "/db", wrong)
            #expect(made.status == 201, "\(made.text)")
            let body =
                #"{"type":"INSERT","table":"Artwork","schema":"public","record":{"id":7,"art"#
                + #"ist":"artist-1"},"old_record":null}"#
            let answer = try await relay.call(.post, Self.path + "/db", body: body)
            #expect(answer.status == 200, "\(answer.text)")
            #expect(statuses(answer) == ["parked"])
            let listed = try await relay.admin(.get, Self.parked)
            guard case .array(let entries)? = listed["parked"], entries.count == 1 else {
                Issue.record("\(listed.text)")
                return
            }
            let again = try await relay.admin(.post, Self.parked + "/1/replay")
            #expect(again.status == 422, "\(again.text)")
            _ = try await relay.admin(
                .put, Self.sources + "/db", wrong.replacing(#"["uid"]"#, with: #"["id"]"#))
            let replayed = try await relay.admin(.post, Self.parked + "/1/replay")
            #expect(statuses(replayed) == ["appended"], "\(replayed.text)")
            let gone = try await relay.admin(.post, Self.parked + "/1/replay")
            #expect(gone.status == 404)
            let changes = try await relay.admin(
                .get, "containers/iCloud.com.example.Art/development/changes")
            guard case .array(let found)? = changes["changes"] else { return }
            #expect(found.count == 1)
        }
    }

    @Test func `a change replayed several times at once is appended once even without a key`()
        async throws
    {
        try await TestRelay.with { relay in
            let wrong =
                #"{"preset":"supabase","verification":{"scheme":"none"},"onUnmappable":"park"#
                + #"","mapping":{"key":["uid"]}}"#
            _ = try await relay.admin(.put, Self.sources + "/db", wrong)
            let body =
                #"{"type":"INSERT","table":"Artwork","schema":"public","record":{"id":7,"art"#
                + #"ist":"artist-1"},"old_record":null}"#
            let answer = try await relay.call(.post, Self.path + "/db", body: body)
            #expect(statuses(answer) == ["parked"], "\(answer.text)")
            _ = try await relay.admin(
                .put, Self.sources + "/db", wrong.replacing(#"["uid"]"#, with: #"["id"]"#))
            let before = try await relay.store.head()
            let path = Self.parked + "/1/replay"
            let replays = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask { try await relay.admin(.post, path).status }
                }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(replays.sorted() == [200] + Array(repeating: 404, count: 7))
            #expect(try await relay.store.entries(after: before, limit: 10).count == 1)
        }
    }

    @Test func `if a refusal would stop the source, a conflict is parked once`() async throws {
        try await TestRelay.with { relay in
            let made = try await relay.admin(
                .put, Self.sources + "/db",
                #"{"preset":"belfry","verification":{"scheme":"none"},"onUnmappable":"park"}"#)
            #expect(made.status == 201, "\(made.text)")
            let path = Self.path + "/db"
            let headers = ["webhook-id": "m1"]
            let first = try await relay.call(.post, path, headers: headers, body: Self.change)
            #expect(statuses(first) == ["appended"], "\(first.text)")
            let other = Self.change.replacing("artist-1", with: "artist-2")
            var numbers: [JSONValue?] = []
            for _ in 1...2 {
                let answer = try await relay.call(.post, path, headers: headers, body: other)
                #expect(answer.status == 200, "\(answer.text)")
                #expect(statuses(answer) == ["conflict", "parked"])
                numbers.append(answer.json.value(at: ["results", "1", "number"]))
            }
            #expect(numbers[0] == numbers[1])
            let parked = try await relay.admin(.get, Self.parked)
            guard case .array(let entries)? = parked["parked"] else {
                Issue.record("\(parked.text)")
                return
            }
            #expect(entries.count == 1, "\(parked.text)")
            #expect(
                entries.first?.value(at: ["reason"])
                    == .string(
                        "1 of 1 change has the ID or position of another change; the others are "
                            + "appended"))
        }
    }

    @Test func `a batch of another length under the same ID is refused as a whole`() async throws {
        try await TestRelay.with { relay in
            let made = try await relay.admin(
                .put, Self.sources + "/db", #"{"preset":"belfry","verification":{"scheme":"none"}}"#
            )
            #expect(made.status == 201, "\(made.text)")
            func post(_ names: [String]) async throws -> TestRelay.Answer {
                let changes = names.map { Self.change.replacing("artist-1", with: $0) }
                return try await relay.call(
                    .post, Self.path + "/db", headers: ["webhook-id": "m1"],
                    body: "[\(changes.joined(separator: ","))]")
            }
            #expect(statuses(try await post(["a", "b"])) == ["appended", "appended"])
            for names in [["a", "b", "c"], ["a"]] {
                let answer = try await post(names)
                #expect(answer.status == 409, "\(answer.text)")
                #expect(statuses(answer) == names.map { _ in "conflict" }, "\(answer.text)")
            }
            let again = try await post(["a", "b"])
            #expect(again.status == 200)
            #expect(statuses(again) == ["duplicate", "duplicate"], "\(again.text)")
        }
    }

    @Test func `malformed bodies are refused with the place`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(
                .put, Self.sources + "/open",
                #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            let broken = try await relay.call(.post, Self.path + "/open", body: "{")
            #expect(broken.status == 400)
            let unfit = try await relay.call(.post, Self.path + "/open", body: "{}")
            #expect(unfit.status == 422)
            #expect(unfit["serverErrorCode"] == "BAD_REQUEST")
        }
    }
}
