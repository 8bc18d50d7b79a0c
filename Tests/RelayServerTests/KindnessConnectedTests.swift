import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import RelayServer

/// A device with `unlessConnected` gets no push while its connection tells it about the change.
@Suite(.serialized, .timeLimit(.minutes(30))) struct KindnessConnectedTests {
    private typealias Live = LiveScenarioTests
    private typealias Scenario = ExplainScenarioTests

    private static func register(
        _ relay: RunningRelay, _ word: JSONValue
    ) async throws
        -> RelayClient.Reply
    {
        try await relay.container.call(
            "tokens/register",
            [
                "apnsToken": .string(SampleDevice.usual[0].token), "apnsEnvironment": "development",
                "deviceID": "phone", "unlessConnected": word,
            ], as: "alice", in: nil
        ).expect(200)
    }

    /// Opens a page of a user's that claims to be the phone and sees these changes.
    private static func page(
        _ relay: RunningRelay, as user: String = "alice", seeing query: JSONObject,
        answering answers: Bool = true
    ) async throws -> LiveConnection {
        let page = try await Live.open(relay, as: user, on: "phone")
        page.answersPings.withLock { $0 = answers }
        var declared: JSONObject = ["id": "q"]
        declared.members += query.members
        try await page.send(["type": "set", "version": 1, "queries": [.object(declared)]])
        while let state = await page.frame("state") {
            if state["state"] == "complete" { break }
        }
        return page
    }

    private static let artworks: JSONObject = ["kind": "changes", "recordType": "Artwork"]

    /// Runs `body` while the frames of a connection are read.
    private static func reading(
        _ page: LiveConnection, _ body: () async throws -> Void
    ) async throws {
        let reader = Task { while await page.frame() != nil {} }
        try await body()
        try? await page.close()
        await reader.value
    }

    private static func standing(
        _ position: String, _ relay: RunningRelay
    ) async throws -> (standing: String, sentence: String) {
        let reply = try await Scenario.ask(
            ["position": .string(position), "deviceID": "phone"], relay)
        let device = reply["explanations", "0", "devices", "0"]
        return (
            device?.value(at: ["standing"])?.string ?? "",
            device?.value(at: ["sentence"])?.string ?? ""
        )
    }

    private static func accounts(_ relay: RunningRelay) async throws -> (seen: Int, pending: Int) {
        var sums = (seen: 0, pending: 0)
        for account in try await relay.relay.store.accounts() {
            #expect(account.difference == 0, "\(account)")
            sums = (sums.seen + account.seen, sums.pending + account.pending)
        }
        return sums
    }

    /// Waits until no retry waits any more.
    private static func waitUntilNothingWaits(_ relay: RunningRelay) async throws {
        try await relay.relay.waitUntilSettled(within: .patience)
        while try await relay.relay.store.backlog().retries > 0 {}
    }

    @Test func `a change that a connection shows and confirms is not pushed`() async throws {
        try await RunningRelay.with { relay in
            let reply = try await Self.register(relay, true)
            #expect(reply["unlessConnected"] == true, "\(reply.text)")
            try await relay.container.save(.query("q"))
            // A registration that omits the setting keeps it.
            try await relay.container.register(SampleDevice.usual[0])
            let page = try await Self.page(relay, seeing: Self.artworks)
            try await Self.reading(page) {
                let position = try await Scenario.post(.change("create", "a1"), relay)
                try await Self.waitUntilNothingWaits(relay)
                let (standing, sentence) = try await Self.standing(position, relay)
                #expect(standing == "seen", "\(sentence)")
                #expect(sentence.hasPrefix("Told over the device's connection, "), "\(sentence)")
                #expect(try await Self.accounts(relay) == (1, 0))
                let list = try await relay.client.administer(
                    "GET", "\(relay.container.path)/deliveries?state=seen")
                #expect(list["deliveries", "0", "deviceID"] == "phone", "\(list.text)")
            }
            // Alice's tablet is not connected.
            #expect(try await relay.arrivals() == ["tablet: qry q created a1"])
            // The connection has closed, so the next change is pushed.
            try await relay.container.post(.change("create", "a2"))
            #expect(try await relay.pushes(3).count == 3)
            // After the setting is removed, a connection changes nothing.
            #expect(try await Self.register(relay, false)["unlessConnected"] == nil)
            let again = try await Self.page(relay, seeing: Self.artworks)
            try await Self.reading(again) {
                try await relay.container.post(.change("create", "a3"))
                _ = try await relay.pushes(5)
            }
        }
    }

    @Test func `shown notifications count, and a subscription's own setting does too`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PATCH", relay.container.path, ["keepsInbox": true]
            ).expect(200)
            try await relay.container.save(.query("q", adding: ["unlessConnected": true]))
            try await relay.container.save(.query("plain", "price < 100"))
            let page = try await Self.page(
                relay, seeing: ["kind": "notifications", "initial": "none"])
            try await Self.reading(page) {
                try await relay.container.post(.change("create", "a1", ["price": 1]))
                try await Self.waitUntilNothingWaits(relay)
                #expect(try await Self.accounts(relay).seen == 1)
            }
            #expect(
                try await relay.arrivals() == [
                    "phone: qry plain created a1", "tablet: qry plain created a1",
                    "tablet: qry q created a1",
                ])
        }
    }

    @Test func `a change in a live result counts as shown`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            _ = try await Self.register(relay, true)
            try await relay.container.save(.query("q"))
            let page = try await Self.page(
                relay, seeing: ["recordType": "Artwork", "query": ["predicate": "price < 100"]])
            try await Self.reading(page) {
                try await relay.container.post(.change("create", "a1", ["price": 1]))
                try await Self.waitUntilNothingWaits(relay)
                #expect(try await Self.accounts(relay).seen == 1)
                // A change that the query does not show is pushed.
                try await relay.container.post(.change("create", "a2", ["price": 500]))
                try await Self.waitUntilNothingWaits(relay)
            }
            #expect(
                try await relay.arrivals() == [
                    "phone: qry q created a2", "tablet: qry q created a1",
                    "tablet: qry q created a2",
                ])
        }
    }

    @Test func `a client that watches something else gets the push at once`() async throws {
        try await RunningRelay.with { relay in
            _ = try await Self.register(relay, true)
            try await relay.container.save(.query("q"))
            let page = try await Self.page(
                relay, seeing: ["kind": "changes", "recordType": "Artist"])
            try await Self.reading(page) {
                // The push does not wait for a connection that will not tell. Other work on the
                // machine may delay one of the pushes, but not all of them.
                var least = Duration.patience
                for number in 1...5 where least >= .seconds(9) {
                    let began = World.real.now()
                    try await relay.container.post(.change("create", "a\(number)"))
                    _ = try await relay.pushes(2 * number)
                    least = min(least, World.real.now().duration(since: began))
                }
                #expect(least < .seconds(9), "\(least)")
            }
            #expect(try await Self.accounts(relay).seen == 0)
        }
    }

    @Test func `a connection that ends without a confirmation releases the push`()
        async throws
    {
        try await RunningRelay.with { relay in
            _ = try await Self.register(relay, true)
            try await relay.container.save(.query("q"))
            let page = try await Self.page(relay, seeing: Self.artworks, answering: false)
            let position = try await Scenario.post(.change("create", "a1"), relay)
            // The page was told, but does not confirm it.
            #expect(await page.frame("change") != nil)
            while try await relay.relay.store.heldCounts()[.connected] != 1 {}
            let (standing, sentence) = try await Self.standing(position, relay)
            #expect(standing == "waiting")
            #expect(sentence.hasPrefix("Held: its device is connected, until "), "\(sentence)")
            let closed = World.real.now()
            try await page.close()
            _ = try await relay.pushes(2)
            let took = World.real.now().duration(since: closed)
            #expect(took < .seconds(8), "it goes at once, not when patience ends: \(took)")
            try await Self.waitUntilNothingWaits(relay)
            #expect(try await Self.accounts(relay) == (0, 0))
            #expect(try await Self.standing(position, relay).standing == "delivered")
        }
    }

    @Test func `a connection of another user holds nothing back`() async throws {
        try await RunningRelay.with { relay in
            _ = try await Self.register(relay, true)
            try await relay.container.save(.query("q"))
            let page = try await Self.page(relay, as: "bob", seeing: Self.artworks)
            try await Self.reading(page) {
                try await relay.container.post(.change("create", "a1"))
                _ = try await relay.pushes(2)
            }
            #expect(try await Self.accounts(relay).seen == 0)
        }
    }
}
