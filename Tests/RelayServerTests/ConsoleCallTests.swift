import HTTPTypes
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// The calls that only the console's pages make.
@Suite(.timeLimit(.minutes(15))) struct ConsoleCallTests {
    private static let container = "containers/iCloud.com.example.Art/development"

    private static func addSource(_ relay: TestRelay) async throws {
        let made = try await relay.admin(
            .put, "\(container)/sources/shop",
            #"{"preset": "belfry", "verification": {"scheme": "none"}, "onUnmappable": "park"}"#)
        #expect(made.status == 201, "\(made.text)")
    }

    // MARK: What needs attention

    @Test func `the relay's own checkup equals doctor's without what it cannot know`() async throws
    {
        try await TestRelay.with { relay in
            let fine = try await relay.admin(.get, "attention")
            #expect(fine.status == 200, "\(fine.text)")
            #expect(fine["verdict"] == "ok: nothing needs to be done")
            guard case .array(let checks)? = fine["checks"] else { return }
            let kinds = checks.compactMap { check -> String? in
                if case .string(let kind)? = check.value(at: ["kind"]) { kind } else { nil }
            }
            #expect(
                kinds == [
                    "relay", "log", "disk", "intake", "gateway", "credential", "source",
                    "leftovers",
                ])
        }
        let halt: @Sendable () -> [IntakeBound: String] = { [.memory: "2 GB are in use"] }
        try await TestRelay.with(adjusting: { $0.boundsReached = halt }) { relay in
            let full = try await relay.admin(.get, "attention")
            #expect(full["state"] == "fail")
            #expect(
                full["verdict"] == "fail: changes are refused (memory: 2 GB are in use)",
                "\(full.text)")
        }
    }

    @Test func `open problems lead to their container, also with a container's token`()
        async throws
    {
        try await TestRelay.with { relay in
            try await Self.addSource(relay)
            _ = try await relay.call(
                .post, "/changes/1/iCloud.com.example.Art/development/shop",
                body: #"{"operation": "make", "recordType": "T", "recordName": "r"}"#)
            let made = try await relay.admin(
                .post, "tokens",
                #"{"label": "own", "access": "read", "container": "iCloud.com.example.Art", "#
                    + #""environment": "development"}"#)
            guard case .string(let secret)? = made["secret"] else { return }
            let own = try await relay.call(
                .get, "/admin/1/\(Self.container)/attention",
                headers: ["Authorization": "Bearer \(secret)"])
            #expect(own.status == 200, "\(own.text)")
            #expect(own["state"] == "warn")
            guard case .array(let checks)? = own["checks"] else { return }
            let left = checks.first { $0.value(at: ["kind"]) == "leftovers" }
            #expect(left?.value(at: ["state"]) == "warn", "\(own.text)")
            #expect(left?.value(at: ["container"]) == "iCloud.com.example.Art")
            #expect(left?.value(at: ["environment"]) == "development")
            let source = checks.first { $0.value(at: ["kind"]) == "source" }
            #expect(source?.value(at: ["source"]) == "shop")
        }
    }

    // MARK: Users

    @Test func `users are listed by name with what they have, page by page`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("new", "artist = \"a-1\""))
            let all = try await relay.client.administer("GET", "\(relay.container.path)/users")
            #expect(all.status == 200, "\(all.text)")
            #expect(all["users", "0", "userRecordName"] == "alice")
            #expect(all["users", "0", "devices"] == 2)
            #expect(all["users", "0", "subscriptions"] == 1)
            #expect(all["users", "1", "userRecordName"] == "bob")
            #expect(all["after"] == nil)
            let first = try await relay.client.administer(
                "GET", "\(relay.container.path)/users?limit=1")
            #expect(first["after"] == "alice")
            let second = try await relay.client.administer(
                "GET", "\(relay.container.path)/users?limit=1&after=alice")
            #expect(second["users", "0", "userRecordName"] == "bob")
            #expect(second["after"] == nil)
            let found = try await relay.client.administer(
                "GET", "\(relay.container.path)/users?prefix=b")
            #expect(found["users", "0", "userRecordName"] == "bob")
            #expect(found["users", "1"] == nil)
        }
    }

    // MARK: Sending and mending

    @Test func `a change sent by the operator is treated as a webhook and audited`()
        async throws
    {
        try await TestRelay.with { relay in
            try await Self.addSource(relay)
            let change =
                #"{"operation": "create", "recordType": "Artwork", "recordName": "a", "#
                + #""after": {"price": 1}}"#
            let sent = try await relay.admin(
                .post, "\(Self.container)/sources/shop/send", change)
            #expect(sent.status == 200, "\(sent.text)")
            #expect(sent.json.value(at: ["results", "0", "status"]) == "appended")
            let listed = try await relay.admin(.get, "\(Self.container)/changes")
            #expect(listed.json.value(at: ["changes", "0", "source"]) == "shop")
            #expect(!listed.text.contains(TestRelay.adminToken))
            let missing = try await relay.admin(
                .post, "\(Self.container)/sources/none/send", change)
            #expect(missing.status == 404)
            let audit = try await relay.admin(.get, "audit")
            #expect(
                audit.json.value(at: ["entries", "1", "path"])
                    == .string("/admin/1/\(Self.container)/sources/shop/send"))
        }
    }

    @Test func `a parked change is edited and replayed, and stays while it cannot be mapped`()
        async throws
    {
        try await TestRelay.with { relay in
            try await Self.addSource(relay)
            _ = try await relay.call(
                .post, "/changes/1/iCloud.com.example.Art/development/shop",
                body: #"{"operation": "make", "recordType": "T", "recordName": "r"}"#)
            let parked = "\(Self.container)/changes/parked"
            let replay = "\(parked)/1/replay"
            let still = try await relay.admin(.post, replay)
            #expect(still.status == 422, "\(still.text)")
            let wrong = try await relay.admin(
                .post, replay, #"{"raw": {"operation": "create", "recordType": "T"}}"#)
            #expect(wrong.status == 422, "\(wrong.text)")
            let strange = try await relay.admin(.post, replay, #"{"mended": {}}"#)
            #expect(strange.status == 400)
            let listed = try await relay.admin(.get, parked)
            #expect(listed.json.value(at: ["parked", "0", "number"]) == 1)
            guard case .object(var shown)? = listed.json.value(at: ["parked", "0", "body"]) else {
                Issue.record("\(listed.text)")
                return
            }
            shown["raw"] = [
                "operation": "delete", "recordType": "T", "recordName": "r",
            ]
            let mended = try await relay.admin(
                .post, replay, JSONValue.object(["body": .object(shown)]).text)
            #expect(mended.status == 200, "\(mended.text)")
            #expect(mended.json.value(at: ["results", "0", "status"]) == "appended")
            let gone = try await relay.admin(.get, parked)
            #expect(gone["parked"] == [])
        }
    }

    // MARK: A container in one answer, and phones

    @Test func `a container's overview is one answer without a secret`() async throws {
        try await TestRelay.with { relay in
            try await Self.addSource(relay)
            let shown = try await relay.admin(.get, "\(Self.container)/summary")
            #expect(shown.status == 200, "\(shown.text)")
            #expect(shown.json.value(at: ["settings", "container"]) == "iCloud.com.example.Art")
            #expect(shown["canSend"] == "noCredential" && shown["credential"] == .null)
            #expect(shown.json.value(at: ["sources", "0", "name"]) == "shop")
            #expect(shown.json.value(at: ["keys", "2", "id"]) != nil)
            #expect(shown.json.value(at: ["use", "recordsNotKept"]) == 0)
            #expect(shown.json.value(at: ["retention", "logSeconds"]) == 604_800)
            for secret in [TestRelay.apiToken, TestRelay.sharedSecret] {
                #expect(!shown.text.contains(secret))
            }
        }
    }

    @Test func `only a sandbox has phones, and they show their pushes`() async throws {
        try await TestRelay.with { relay in
            let none = try await relay.admin(.get, "phones")
            #expect(none.status == 404)
            #expect(none["reason"] == "only a sandbox (belfry dev) has phones")
        }
        let clock = TestClock()
        let book = SandboxPushes(clock: clock) { Array(repeating: 7, count: $0) }
        for number in 1...501 {
            book.note(
                SandboxPushes.Push(
                    at: Fixtures.moment, token: "t", deliveryID: "\(number)",
                    headers: ["apns-topic": "com.example.Art"],
                    payload: Array(#"{"aps":{"badge":1}}"#.utf8)))
        }
        try await TestRelay.with(adjusting: { $0.phones = book }) { relay in
            let all = try await relay.admin(.get, "phones?hold=30")
            #expect(all.json.value(at: ["pushes", "0", "number"]) == "2")
            #expect(all.json.value(at: ["pushes", "0", "payload", "aps", "badge"]) == 1)
            #expect(all.json.value(at: ["pushes", "0", "topic"]) == "com.example.Art")
            #expect(all.json.value(at: ["pushes", "499", "deliveryID"]) == "501")
            #expect(all["phones"] == [])
            guard case .string(let place)? = all["after"] else { return }
            #expect(try await relay.admin(.get, "phones?after=\(place)")["pushes"] == [])
            let foreign = try await relay.admin(.get, "phones?after=0011223344556677.5")
            #expect(foreign["restarted"] == true)
        }
    }
}
