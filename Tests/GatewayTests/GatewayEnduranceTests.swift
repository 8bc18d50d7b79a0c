import Gateway
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Gateways that end connections after a number of requests; the sender goes on with the next one.
@Suite(.serialized, .timeLimit(.minutes(30))) struct GatewayEnduranceTests {
    private func requests(_ count: UInt64) throws -> [PushRequest] {
        try (1...count).map { try PushRequest.sample(ticket: $0) }
    }

    private func after(_ count: Int, _ fault: GatewayAnswer) -> AnswerScript {
        .all(ScriptedAnswer(.accept, times: count), ScriptedAnswer(fault, times: 1))
    }

    /// Expects that every push was accepted once and that nothing backed off.
    private func expectNoTrouble(_ rig: GatewayRig, _ outcomes: [PushOutcome]) {
        #expect(outcomes.allSatisfy { $0 == .accepted }, "\(Set(outcomes))")
        #expect(rig.simulator.totals.duplicates == 0)
        let troubles = rig.events.all.filter { if case .backingOff = $0 { true } else { false } }
        #expect(troubles == [])
    }

    private func isWidthChanged(_ rig: GatewayRig) -> Bool {
        rig.events.all.contains { if case .widthChanged = $0 { true } else { false } }
    }

    @Test func `streams that have ended are not reset`() async throws {
        try await GatewayRig.run {
            $0.resetGuard = ResetGuard(maximumCount: 20, window: .seconds(600))
        } _: { rig in
            let outcomes = await rig.outcomes(of: try requests(600))
            expectNoTrouble(rig, outcomes)
            #expect(rig.simulator.totals.connections == 1)
            #expect(rig.simulator.totals.protocolErrors == 0)
        }
    }

    @Test(arguments: [GoAway.Ending.drain, .keepOpen])
    func `connections are replaced before the gateway ends them`(
        ending: GoAway.Ending
    ) async throws {
        try await GatewayRig.run {
            $0.requestLimit = RequestLimit(count: 200, ending: ending)
        } settings: {
            $0.streamsPerConnection = 20
        } _: { rig in
            let outcomes = await rig.outcomes(of: try requests(4000))
            expectNoTrouble(rig, outcomes)
            #expect(!isWidthChanged(rig))
            #expect(rig.simulator.totals.goAwaysSent <= 3, "two ends teach it")
            #expect(rig.events.retirements.count { $0 == .spent } >= 15)
            let numbers = rig.events.all.compactMap { event in
                if case .allowanceChanged(_, let requests) = event { requests } else { nil }
            }
            #expect(numbers.count == 1)
            #expect(numbers.allSatisfy { (140..<200).contains($0) })
        }
    }

    @Test func `the number of requests is learned from abrupt ends too`() async throws {
        try await GatewayRig.run {
            $0.requestLimit = RequestLimit(count: 200, ending: .close)
        } settings: {
            $0.streamsPerConnection = 5
        } _: { rig in
            await rig.deliver(try requests(3000))
            #expect(rig.simulator.totals.goAwaysSent <= 4)
            #expect(rig.events.retirements.contains(.spent))
        }
    }

    @Test func `connections that the gateway never ends are not replaced`() async throws {
        try await GatewayRig.run {
            $0.script = after(500, .goAway(GoAway(ending: .keepOpen)))
        } settings: {
            $0.streamsPerConnection = 20
        } _: { rig in
            let outcomes = await rig.outcomes(of: try requests(4000))
            expectNoTrouble(rig, outcomes)
            #expect(rig.simulator.totals.connections == 2)
            #expect(!rig.events.retirements.contains(.spent))
        }
    }

    @Test(arguments: [
        GatewayAnswer.goAway(GoAway(lastStream: .beforeThis, ending: .keepOpen)),
        .goAway(GoAway(lastStream: .beforeThis, ending: .drain)),
        .resetStream(.refused),
    ])
    func `a request that was surely not processed is sent again without an error`(
        fault: GatewayAnswer
    ) async throws {
        try await GatewayRig.run {
            $0.script = after(100, fault)
        } _: { rig in
            let outcomes = await rig.outcomes(of: try requests(600))
            expectNoTrouble(rig, outcomes)
            #expect(isWidthChanged(rig) == (fault == .resetStream(.refused)))
        }
    }

    @Test func `a gateway that refuses each first stream causes a back-off`() async throws {
        try await GatewayRig.run {
            $0.script = .all(ScriptedAnswer(.resetStream(.refused)))
        } _: { rig in
            rig.gateway.send(try requests(10))
            await rig.events.wait { if case .backingOff = $0 { true } else { false } }
            #expect(rig.simulator.totals.connections <= 2)
        }
    }
}
