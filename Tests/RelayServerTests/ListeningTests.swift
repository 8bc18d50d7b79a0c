import Fanout
import HTTPTypes
import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// The call that waits for events of the walk.
@Suite(.timeLimit(.minutes(15))) struct ListeningTests {
    /// Makes one call to a running relay.
    private static func listen(
        _ relay: RunningRelay, _ query: String = ""
    ) async throws -> RelayClient.Reply {
        try await relay.client.administer(
            "GET", "\(relay.container.path)/events\(query.isEmpty ? "" : "?\(query)")")
    }

    private static func kinds(_ reply: RelayClient.Reply) -> [String] {
        guard case .array(let events)? = reply["events"] else { return [] }
        return events.compactMap { event in
            guard case .object(let event) = event, case .string(let kind)? = event["kind"] else {
                return nil
            }
            return kind
        }
    }

    private static func after(_ reply: RelayClient.Reply) throws -> String {
        guard case .string(let place)? = reply["after"] else {
            throw NoPlace(text: reply.text)
        }
        return place
    }

    private struct NoPlace: Error { let text: String }

    @Test func `a listener learns that a push is held and why`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", adding: ["paused": true]), as: "bob")
            let place = try Self.after(try await Self.listen(relay))
            try await relay.container.post(.change("create", "w1"))
            try await relay.relay.waitUntilSettled(within: .patience)
            let all = try await Self.listen(relay, "after=\(place)")
            #expect(Self.kinds(all) == ["change", "match", "push", "answer"], "\(all.text)")
            let said = try #require(all["events", "3", "answer"])
            #expect(said.value(at: ["becomes"]) == "held", "\(said.text)")
            #expect(said.value(at: ["outcome"]) == "notSent")
            #expect(said.value(at: ["attempt"]) == 0)
            #expect(said.value(at: ["reason"]) == "held: the subscription is paused")
            #expect(all["events", "3", "deliveryID"] == all["events", "2", "deliveryID"])
        }
    }

    @Test func `a listener gets the change, the match and the push, but no token`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("new", "artist = \"a-1\""))
            let begun = try await Self.listen(relay)
            #expect(begun.status == 200, "\(begun.text)")
            #expect(Self.kinds(begun) == [])
            let place = try Self.after(begun)
            // The call is held until there is an event.
            async let held = Self.listen(relay, "after=\(place)&hold=30&only=change")
            try await relay.container.post(
                .change(
                    "create", "w1", ["artist": "a-1"], adding: ["origin": ["deviceID": "phone"]]))
            let change = try await held
            #expect(Self.kinds(change) == ["change"], "\(change.text)")
            #expect(change["events", "0", "recordName"] == "w1")
            #expect(change["events", "0", "fired"] == 1)
            #expect(change["events", "0", "leftOut"] == ["phone"])
            _ = try await relay.arrivals()
            let all = try await Self.listen(relay, "after=\(place)")
            #expect(Self.kinds(all) == ["change", "match", "push", "answer"], "\(all.text)")
            #expect(all["events", "3", "deviceID"] == "tablet")
            #expect(all["events", "3", "deliveryID"] == all["events", "2", "deliveryID"])
            #expect(all["events", "3", "recordName"] == "w1")
            let said = try #require(all["events", "3", "answer"])
            #expect(said.value(at: ["attempt"]) == 1)
            #expect(said.value(at: ["outcome"]) == "accepted")
            #expect(said.value(at: ["status"]) == 200)
            #expect(said.value(at: ["becomes"]) == "accepted")
            #expect(said.value(at: ["milliseconds"]) != nil)
            #expect(all["events", "1", "subscriptionID"] == "new")
            #expect(all["events", "2", "deviceID"] == "tablet")
            #expect(all["events", "2", "recordType"] == "Artwork")
            #expect(all["events", "2", "notification", "payload", "ck", "qry", "rid"] == "w1")
            #expect(!all.text.contains(SampleDevice(name: "tablet", owner: "alice").token))
            let end = try Self.after(all)
            let none = try await Self.listen(relay, "after=\(end)&hold=0")
            #expect(Self.kinds(none) == [])
            let other = try await Self.listen(
                relay, "after=0011223344556677.5&user=bob")
            #expect(other["restarted"] == true)
            #expect(Self.kinds(other) == [])
        }
    }

    @Test(arguments: [
        (
            "after=x",
            "after: \"x\" is not valid; take the value of \"after\" from an earlier answer"
        ),
        ("only=pushes", "only: \"pushes\" is unknown; allowed are change, match, push, answer"),
        ("hold=31", "hold: must be 0 to 30 seconds"), ("limit=0", "limit: must be 1 to 1000"),
    ]) func `invalid parameters are refused`(query: String, reason: String) async throws {
        try await RunningRelay.with { relay in
            let reply = try await Self.listen(relay, query)
            #expect(reply.status == 400)
            #expect(reply.text.contains(reason.replacing("\"", with: "\\\"")), "\(reply.text)")
        }
    }

    @Test func `a file without a relay cannot be listened to`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .get, "/admin/1/containers/iCloud.com.example.Art/development/events",
                headers: ["Authorization": "Bearer \(TestRelay.adminToken)"])
            #expect(answer.status == 400)
            #expect(answer.text.contains("only a running relay has events"))
        }
    }

    @Test func `the number of listened containers is bounded, and each ends after its last call`()
        async throws
    {
        var settings = WalkEvents.Settings()
        settings.containers = 1
        let clock = TestClock()
        let events = WalkEvents(
            settings: settings, clock: clock, now: { Fixtures.moment },
            randomBytes: { Array(repeating: 7, count: $0) })
        let first = WalkEvents.Question(container: Fixtures.container)
        let other = WalkEvents.Question(
            container: ContainerKey(
                container: Fixtures.identifier("iCloud.com.example.Art"), environment: .production))
        #expect(!events.watch.isOn(Fixtures.container))
        _ = try await events.next(first, hold: .zero)
        #expect(events.watch.isOn(Fixtures.container))
        #expect(!events.watch.isOn(other.container))
        await #expect(throws: APIError.self) { try await events.next(other, hold: .zero) }
        clock.advance(by: .seconds(61))
        #expect(!events.watch.isOn(Fixtures.container))
        _ = try await events.next(other, hold: .zero)
        #expect(events.watch.isOn(other.container))
    }

    @Test func `a listener to one container leaves places for others`() async throws {
        var settings = WalkEvents.Settings()
        settings.listeners = 2
        let events = WalkEvents(
            settings: settings, clock: ContinuousClock(), now: { Fixtures.moment },
            randomBytes: { Array(repeating: 7, count: $0) })
        var question = WalkEvents.Question(container: Fixtures.container)
        question.place = try await events.next(question, hold: .zero).place
        let other = WalkEvents.Question(
            container: ContainerKey(
                container: Fixtures.identifier("iCloud.com.example.Art"), environment: .production))
        let asked = question
        // This call may compete with the one below that checks whether it is waiting.
        let held = Task {
            while !Task.isCancelled, (try? await events.next(asked, hold: .seconds(600))) == nil {}
        }
        // It is waiting once there is no place for another call.
        let isTaken = await Turns.yield(until: {
            (try? await events.next(asked, hold: .zero)) == nil
        })
        #expect(isTaken)
        _ = try await events.next(other, hold: .zero)
        held.cancel()
        await held.value
    }

    @Test func `a held call is answered with nothing at its end`() async throws {
        let events = WalkEvents(
            clock: ContinuousClock(), now: { Fixtures.moment },
            randomBytes: { Array(repeating: 7, count: $0) })
        var question = WalkEvents.Question(container: Fixtures.container)
        question.place = try await events.next(question, hold: .zero).place
        let answer = try await events.next(question, hold: .milliseconds(5))
        #expect(answer.events.isEmpty)
        #expect(answer.place == question.place)
        #expect(!answer.isRestarted)
    }
}
