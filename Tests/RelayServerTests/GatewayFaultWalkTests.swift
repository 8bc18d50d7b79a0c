import Foundation
import GatewaySimulator
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Faults of the gateway and the network (docs/delivery.md), from a posted change to its receipts.
@Suite(.serialized, .timeLimit(.minutes(30))) struct GatewayFaultWalkTests {
    private static let names = (1...20).map { "a\($0)" }

    private static func post(_ names: [String], to relay: RunningRelay) async throws {
        try await relay.container.post(.array(names.map { .change("create", $0) }))
    }

    /// Waits until bob's phone has accepted each of `count` changes, and returns the pushes.
    private static func accepted(
        _ count: Int, by gateway: SampleGateway
    ) async throws -> [ReceivedPush] {
        let simulated = gateway.simulated
        _ = try await simulated.totals(within: .patience) {
            $0.accepted - $0.duplicates >= count
        }
        return simulated.pushes.filter(\.isAccepted)
    }

    private static func outcomes(of relay: RunningRelay) async throws -> Set<String> {
        let reply = try await relay.client.administer("GET", "receipts?limit=1000").expect(200)
        return Set(
            relay.elements(of: reply, "receipts").compactMap { receipt in
                guard case .string(let outcome)? = receipt.value(at: ["outcome"]) else {
                    return nil
                }
                return outcome
            })
    }

    @Test func `a gateway that was away gets everything once`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"), as: "bob")
            await relay.gateway.simulated.stop()
            try await Self.post(Self.names, to: relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            // The retries are in the store, and nothing of them is in memory.
            #expect(try await relay.listed("retries").count == 20)
            #expect(try await Self.outcomes(of: relay) == ["deferred"])
            let back = try await relay.gateway.startAgain()
            let pushes = try await Self.accepted(20, by: back)
            #expect(pushes.count == 20)
            #expect(back.simulated.totals.duplicates == 0)
            await back.simulated.stop()
        }
    }

    @Test func `a slow gateway delays no webhook`() async throws {
        let script = AnswerScript.all(
            ScriptedAnswer(.accept, delay: .milliseconds(2500) ... .milliseconds(2600)))
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            for name in Self.names { try await relay.container.post(.change("create", name)) }
            let pushes = try await Self.accepted(20, by: relay.gateway)
            // Answers to webhooks do not wait for their pushes, or the next would come later.
            let moments = pushes.map(\.receivedAt).sorted()
            #expect(zip(moments, moments.dropFirst()).contains { $1 < $0.addingTimeInterval(2) })
            #expect(Set(pushes.map(\.apnsID)).count == pushes.count, "nothing twice")
        }
    }

    @Test func `a gateway that asks for patience is left alone for that time`()
        async throws
    {
        let busy = GatewaySimulator.GatewayRefusal(
            status: 503, reason: "ServiceUnavailable", retryAfter: 3)
        let script = AnswerScript.all(
            ScriptedAnswer(.accept, times: 1), ScriptedAnswer(.refuse(busy), times: 1),
            ScriptedAnswer(.accept))
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            try await Self.post(["a0"], to: relay)
            _ = try await Self.accepted(1, by: relay.gateway)
            try await Self.post(["a1"], to: relay)
            _ = try await relay.pushes(2)
            try await Self.post(Self.names.map { $0 + "later" }, to: relay)
            let pushes = try await Self.accepted(22, by: relay.gateway)
            let refused = try #require(
                relay.gateway.simulated.pushes.first { !$0.isAccepted }?.receivedAt)
            let next = pushes.map(\.receivedAt).filter { $0 > refused }.min()
            #expect(try #require(next).timeIntervalSince(refused) >= 3)
        }
    }

    @Test func `a gateway with a new certificate authority is refused until it is trusted`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"), as: "bob")
            await relay.gateway.simulated.stop()
            let port = relay.gateway.simulated.port
            var strange = SimulatedGateway.Configuration()
            strange.port = port
            let stranger = try await SimulatedGateway.start(strange)
            try await Self.post(Self.names, to: relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            #expect(stranger.totals.received == 0, "nothing is sent, in the clear or otherwise")
            let waiting = try await relay.listed("retries")
            #expect(waiting.count == 20)
            await stranger.stop()
            let back = try await relay.gateway.startAgain()
            let pushes = try await Self.accepted(20, by: back)
            #expect(pushes.count == 20)
            await back.simulated.stop()
        }
    }

    static let cuts: [GatewayAnswer] = [
        .goAway(GoAway()), .goAway(GoAway(lastStream: .beforeThis)),
        .goAway(GoAway(ending: .close)), .closeConnection(.reset), .closeConnection(.finish),
        .resetStream(.refused), .resetStream(.internalError), .silence,
    ]

    @Test(arguments: cuts)
    func `a cut in mid-stream loses nothing and repeats only unanswered pushes`(
        cut: GatewayAnswer
    ) async throws {
        let script = AnswerScript.all(
            ScriptedAnswer(.accept, times: 10), ScriptedAnswer(cut, times: 1),
            ScriptedAnswer(.accept))
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            try await Self.post(["a0"] + Self.names, to: relay)
            let pushes = try await Self.accepted(21, by: relay.gateway)
            let simulated = relay.gateway.simulated
            #expect(simulated.streamLimitViolations.isEmpty)
            // A repeated push has the ID of the first one.
            #expect(Set(pushes.map(\.apnsID)).count == 21)
            let outcomes = try await Self.outcomes(of: relay)
            #expect(outcomes.isSubset(of: ["accepted", "deferred"]))
            #expect(try await relay.listed("deadLetters") == [])
        }
    }
}
