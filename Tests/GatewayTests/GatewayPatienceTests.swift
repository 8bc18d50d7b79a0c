import Crypto
import Gateway
import GatewaySimulator
import RelayModel
import RelayTestKit
import Synchronization
import Testing

/// A gateway that asks to be left alone is not contacted again and again.
@Suite(.serialized, .timeLimit(.minutes(30))) struct GatewayPatienceTests {
    private static let device = String(repeating: "cd", count: 32)

    private func refusing(
        _ status: Int, _ reason: String, after seconds: Int? = nil
    )
        -> GatewayAnswer
    {
        .refuse(.init(status: status, reason: reason, retryAfter: seconds))
    }

    @Test func `a refused push of one container does not affect others with its credential`()
        async throws
    {
        try await GatewayRig.run {
            $0.script = AnswerScript([
                ScriptRule(
                    .device(Self.device),
                    [ScriptedAnswer(refusing(503, "ServiceUnavailable", after: 999_999_999))])
            ])
        } _: { rig in
            for ticket in 1...8 {
                let refused = try await rig.outcome(
                    of: .sample(ticket: UInt64(ticket), token: Self.device))
                if case .refused(let refusal) = refused {
                    #expect(refusal.reaction == .retry(after: .seconds(6 * 3_600), scope: .gateway))
                }
                let other = try await rig.outcome(
                    of: .sample(
                        ticket: UInt64(100 + ticket), container: "iCloud.com.example.Other"))
                #expect(other == .accepted)
            }
        }
    }

    @Test(arguments: [(503, "Shutdown"), (400, "IdleTimeout")])
    func `a gateway that ends every connection is not contacted for every push`(
        status: Int, reason: String
    ) async throws {
        try await GatewayRig.run {
            $0.script = .all(ScriptedAnswer(refusing(status, reason)))
        } _: { rig in
            let outcomes = await rig.outcomes(of: try (1...300).map { try .sample(ticket: $0) })
            let notSent = outcomes.compactMap { outcome -> PushCause? in
                if case .notSent(let cause) = outcome { cause } else { nil }
            }
            let pauses = rig.events.all.compactMap { event -> Duration? in
                if case .backingOff(_, _, let pause) = event { pause } else { nil }
            }
            // One connection is opened for each pause. A push that would wait for more than two
            // seconds is given back.
            #expect((1...4).contains(rig.simulator.totals.connections))
            #expect(rig.simulator.totals.connections == pauses.count)
            #expect(rig.simulator.totals.received + notSent.count == 300)
            #expect(Set(notSent.map(\.reason)) == ["the gateway answered \(status) \(reason)"])
        }
    }

    @Test func `a push whose registration ended while it waited is not sent`() async throws {
        try await GatewayRig.run(world: { world in
            world.hasEnded = { $0.serial == 7 && $0.ends < 3 }
        }) { rig in
            var ended = try PushRequest.sample(ticket: 1)
            ended.registration = JudgedRegistration(serial: 7, ends: 2)
            // This push was checked after that end, and still belongs to its recipient.
            var judgedSince = try PushRequest.sample(ticket: 2)
            judgedSince.registration = JudgedRegistration(serial: 7, ends: 3)
            let sent = try await rig.outcome(of: judgedSince)
            #expect(sent == .accepted)
            let withdrawn = try await rig.outcome(of: ended)
            #expect(withdrawn == .notSent(cause: .registrationEnded))
            #expect(rig.simulator.totals.received == 1)
        }
    }

    @Test func `pushes that wait for a free stream are not sent once they have ended`()
        async throws
    {
        let simulated = Mutex<SimulatedGateway?>(nil)
        try await GatewayRig.run {
            $0.streamLimit = 4
            // The delay is so long that all four arrive before the first is answered.
            $0.script = .all(ScriptedAnswer(.accept, delay: .seconds(1) ... .seconds(1)))
        } world: { world in
            // Ends the registration once the gateway has the first push and four parallel ones.
            world.hasEnded = { _ in simulated.withLock { $0?.totals.received ?? 0 } >= 5 }
        } _: { rig in
            simulated.withLock { $0 = rig.simulator }
            let requests = try (1...40).map { ticket in
                var request = try PushRequest.sample(ticket: UInt64(ticket))
                request.registration = JudgedRegistration(serial: 7, ends: 2)
                return request
            }
            let outcomes = await rig.outcomes(of: requests)
            let withdrawn = outcomes.count { $0 == .notSent(cause: .registrationEnded) }
            #expect(withdrawn == 35)
            #expect(outcomes.count { $0 == .accepted } == 5)
            // The connection is still usable.
            let other = try await rig.outcome(of: try .sample(ticket: 41))
            #expect(other == .accepted)
            #expect(rig.simulator.totals.connections == 1)
        }
    }

    @Test func `the loss of one machine costs one push a second attempt`() async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(refusing(503, "Shutdown"), times: 1), ScriptedAnswer(.accept))
        } _: { rig in
            let outcomes = await rig.outcomes(of: try (1...50).map { try .sample(ticket: $0) })
            #expect(outcomes.count { $0 == .accepted } == 49)
            #expect(rig.simulator.totals.connections == 2)
        }
    }
}

/// Credentials that are corrected or replaced while the gateway works.
@Suite(.serialized, .timeLimit(.minutes(30))) struct GatewayCredentialTests {
    private let right = P256.Signing.PrivateKey()
    private let wrong = P256.Signing.PrivateKey()

    private var trust: ProviderTrust {
        .keys([
            SigningKey(keyID: "KEY0000001", teamID: "TEAM000001", publicKey: right.publicKey)
        ])
    }

    private func reaction(_ outcome: PushOutcome) -> GatewayReaction? {
        if case .refused(let refusal) = outcome { refusal.reaction } else { nil }
    }

    @Test func `a key that is corrected under its identifier delivers at once`()
        async throws
    {
        let (right, wrong) = (right, wrong)
        let isMended = Flag()
        let kept = KeptTokens()
        try await GatewayRig.run {
            $0.trust = trust
        } world: {
            $0.credentials = { _, _ in .sample(isMended.isSet ? right : wrong) }
            $0.tokenStore = kept.tokenStore
        } _: { rig in
            let request = try PushRequest.sample(ticket: 1)
            let first = try await rig.outcome(of: request)
            #expect(reaction(first) == .retryOnFreshConnection)
            let second = try await rig.outcome(of: .sample(ticket: 2))
            #expect(reaction(second) == .pauseContainer)
            isMended.set()
            rig.gateway.credentialChanged(for: request.container)
            let third = try await rig.outcome(of: .sample(ticket: 3))
            #expect(third == .accepted)
            #expect(kept.count == 2)
        }
    }

    @Test func `a key that is corrected before a restart is used instead of the stored token`()
        async throws
    {
        let kept = KeptTokens()
        for (key, outcome) in [(wrong, nil), (right, PushOutcome.accepted)] {
            try await GatewayRig.run {
                $0.trust = trust
            } world: {
                $0.credentials = { _, _ in .sample(key) }
                $0.tokenStore = kept.tokenStore
            } _: { rig in
                let found = try await rig.outcome(of: .sample())
                #expect(found == outcome ?? found)
                #expect((found == .accepted) == (outcome != nil))
            }
        }
        #expect(kept.count == 2)
    }

    @Test func `waiting pushes use the new credential after a change`() async throws {
        let keys = [P256.Signing.PrivateKey(), P256.Signing.PrivateKey()]
        let isChanged = Flag()
        let stuck = String(repeating: "ab", count: 32)
        try await GatewayRig.run {
            $0.script = AnswerScript([ScriptRule(.device(stuck), [ScriptedAnswer(.silence)])])
        } settings: {
            $0.requestTimeout = .patience
        } world: {
            $0.credentials = { _, _ in
                isChanged.isSet ? .sample(keys[1], keyID: "NEW") : .sample(keys[0])
            }
        } _: { rig in
            // The first push is alone on its connection and never answered, and the others wait
            // for it.
            let first = try PushRequest.sample(ticket: 1, token: stuck)
            let others = try (2...30).map { try PushRequest.sample(ticket: $0) }
            rig.gateway.send([first] + others)
            _ = try await rig.simulator.pushes(count: 1, within: .patience)
            isChanged.set()
            rig.gateway.credentialChanged(for: first.container)
            let ended = await rig.ends.wait(for: Set(others.map(\.ticket)))
            #expect(others.allSatisfy { ended[$0.ticket] == .accepted })
            let tokens = rig.simulator.pushes.map { $0.header("authorization") }
            #expect(tokens.count == 30)
            #expect(Set(tokens.dropFirst()).count == 1)
            #expect(tokens.first != tokens.last)
        }
    }

    @Test func `the connection of a replaced credential closes after its last answer`()
        async throws
    {
        let keys = [P256.Signing.PrivateKey(), P256.Signing.PrivateKey()]
        let isChanged = Flag()
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(.accept, times: 1),
                ScriptedAnswer(.accept, delay: .seconds(2) ... .seconds(2)))
        } world: {
            $0.credentials = { _, _ in
                isChanged.isSet ? .sample(keys[1], keyID: "NEW") : .sample(keys[0])
            }
        } _: { rig in
            let first = try PushRequest.sample(ticket: 1)
            _ = try await rig.outcome(of: first)
            rig.gateway.send(try (2...20).map { try .sample(ticket: $0) })
            _ = try await rig.simulator.pushes(count: 20, within: .patience)
            isChanged.set()
            rig.gateway.credentialChanged(for: first.container)
            await rig.events.wait {
                if case .retired(_, _, .credentialReplaced, _, 20) = $0 { true } else { false }
            }
            #expect(rig.ends.all.values.allSatisfy { $0 == .accepted })
        }
    }

    @Test func `settings that change without the credential keep the connection`()
        async throws
    {
        try await GatewayRig.run { rig in
            let request = try PushRequest.sample(ticket: 1)
            _ = try await rig.outcome(of: request)
            rig.gateway.credentialChanged(for: request.container)
            let next = try await rig.outcome(of: .sample(ticket: 2))
            #expect(next == .accepted)
            #expect(rig.simulator.totals.connections == 1)
        }
    }
}
