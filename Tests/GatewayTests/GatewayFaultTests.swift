import Foundation
import Gateway
import GatewaySimulator
import NIOCore
import RelayModel
import RelayTestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(30))) struct GatewayFaultTests {
    private func requests(_ count: UInt64) throws -> [PushRequest] {
        try (1...count).map { try PushRequest.sample(ticket: $0) }
    }

    private func after(_ count: Int, _ fault: GatewayAnswer) -> AnswerScript {
        .all(ScriptedAnswer(.accept, times: count), ScriptedAnswer(fault, times: 1))
    }

    /// The faults of a connection in the middle of its work.
    static let faults: [GatewayAnswer] = [
        .goAway(GoAway()), .goAway(GoAway(lastStream: .beforeThis)),
        .goAway(GoAway(ending: .close)), .goAway(GoAway(lastStream: .beforeThis, ending: .close)),
        .goAway(GoAway(ending: .keepOpen)),
        .closeConnection(.finish), .closeConnection(.reset),
        .resetStream(.refused), .resetStream(.cancelled), .resetStream(.internalError),
        .freezeConnection, .silence,
    ]

    @Test(arguments: faults)
    func `no fault of a connection loses a push or fails it`(fault: GatewayAnswer) async throws {
        try await GatewayRig.run {
            $0.script = after(100, fault)
            $0.overLimit = .sendsGoAway
        } settings: {
            $0.watchdog = .seconds(4)
            $0.requestTimeout = .seconds(8)
        } _: { rig in
            let requests = try requests(400)
            await rig.deliver(requests)
            for request in requests {
                let tally = rig.simulator.tally(of: request.deliveryID.description)
                #expect(tally.accepted >= 1)
            }
            #expect(rig.simulator.streamLimitViolations == [])
            // Only a push whose outcome is unknown may have been sent twice.
            let unknown = rig.ends.all.values.count {
                if case .unknown = $0 { true } else { false }
            }
            #expect(rig.simulator.totals.duplicates <= unknown)
        }
    }

    @Test func `a push that is never answered ends as unknown, and others go on`() async throws {
        try await GatewayRig.run {
            $0.script = AnswerScript([
                ScriptRule(.device(String(repeating: "ab", count: 32)), [ScriptedAnswer(.silence)])
            ])
        } settings: {
            $0.requestTimeout = .seconds(8)
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            let silent = try PushRequest.sample(
                ticket: 2, token: String(repeating: "ab", count: 32))
            rig.gateway.send([silent])
            let others = await rig.outcomes(of: try (3...50).map { try .sample(ticket: $0) })
            #expect(others.allSatisfy { $0 == .accepted })
            let ended = await rig.ends.wait(for: [2])
            #expect(ended[2] == .unknown(cause: "no answer in time"))
        }
    }

    @Test func `after a goodbye no push waits for one that is never answered`() async throws {
        let (silent, last) = ("ab", "cd")
        func token(_ digits: String) -> String { String(repeating: digits, count: 32) }
        try await GatewayRig.run {
            $0.script = AnswerScript([
                ScriptRule(.device(token(silent)), [ScriptedAnswer(.silence)]),
                ScriptRule(
                    .device(token(last)),
                    [ScriptedAnswer(.goAway(GoAway(ending: .keepOpen)), times: 1)]),
            ])
        } settings: {
            $0.watchdog = .patience
            $0.requestTimeout = .seconds(60)
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            rig.gateway.send([try .sample(ticket: 2, token: token(silent))])
            _ = try await rig.simulator.pushes(count: 2, within: .patience)
            _ = try await rig.outcome(of: .sample(ticket: 3, token: token(last)))
            for ticket in 4...12 as ClosedRange<UInt64> {
                let outcome = try await rig.outcome(of: .sample(ticket: ticket))
                #expect(outcome == .accepted)
            }
            #expect(rig.simulator.totals.connections == 2)
            let ended = await rig.ends.wait(for: [2])
            guard case .unknown? = ended[2] else {
                Issue.record("\(ended)")
                return
            }
        }
    }

    @Test func `a refused stream does not wait for a push that is never answered`() async throws {
        let (silent, refused) = ("ab", "cd")
        func token(_ digits: String) -> String { String(repeating: digits, count: 32) }
        try await GatewayRig.run {
            $0.script = AnswerScript([
                ScriptRule(.device(token(silent)), [ScriptedAnswer(.silence)]),
                ScriptRule(
                    .device(token(refused)), [ScriptedAnswer(.resetStream(.refused), times: 1)]),
            ])
        } settings: {
            $0.watchdog = .seconds(60)
            $0.requestTimeout = .patience
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            rig.gateway.send([try .sample(ticket: 2, token: token(silent))])
            _ = try await rig.simulator.pushes(count: 2, within: .patience)
            let outcome = try await rig.outcome(of: .sample(ticket: 3, token: token(refused)))
            #expect(outcome == .accepted)
            #expect(try await rig.outcome(of: .sample(ticket: 4)) == .accepted)
            _ = await rig.ends.wait(for: [2])
            // A push that waits until the silence is over would show another cause than `closing`.
            #expect(rig.events.retirements.first == .closing)
        }
    }

    @Test func `waiting pushes avoid a black hole, and pushes inside it end as unknown`()
        async throws
    {
        try await GatewayRig.run {
            $0.script = after(1, .freezeConnection)
        } settings: {
            $0.watchdog = .seconds(4)
            $0.streamsPerConnection = 5
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            let outcomes = await rig.outcomes(of: try (2...20).map { try .sample(ticket: $0) })
            let cause: PushCause =
                "the connection was given up: nothing was answered for too long"
            #expect(outcomes.prefix(5).allSatisfy { $0 == .unknown(cause: cause) })
            #expect(outcomes.dropFirst(5).allSatisfy { $0 == .accepted })
            #expect(rig.simulator.totals.connections == 2)
        }
    }

    @Test func `a gateway that is slower than the watchdog gets every push`()
        async throws
    {
        try await GatewayRig.run {
            $0.script = .all(ScriptedAnswer(.accept, delay: .seconds(2) ... .milliseconds(2500)))
        } settings: {
            $0.watchdog = .milliseconds(200)
            $0.requestTimeout = .patience
        } _: { rig in
            await rig.deliver(try requests(60))
        }
    }

    @Test func `a closed idle connection is noticed before it is needed`()
        async throws
    {
        try await GatewayRig.run { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            await rig.simulator.closeConnections()
            await rig.events.wait {
                if case .retired(_, _, .peerClosed, _, _) = $0 { true } else { false }
            }
            let next = try await rig.outcome(of: .sample(ticket: 2))
            #expect(next == .accepted)
        }
    }

    @Test func `a shrinking stream limit is found`() async throws {
        try await GatewayRig.run {
            $0.script = after(50, .acceptLimitingStreams(to: 3))
            $0.overLimit = .refuses
        } _: { rig in
            await rig.deliver(try requests(500))
            #expect(rig.simulator.totals.accepted >= 500)
        }
    }

    @Test func `a gateway that cannot be reached is named as the cause`() async throws {
        try await GatewayRig.run { _ in
        } settings: {
            $0.production = GatewayEndpoint("https://127.0.0.1:9") ?? $0.production
        } _: { rig in
            let outcomes = await rig.outcomes(of: try requests(10))
            for outcome in outcomes {
                guard case .notSent(let cause) = outcome else {
                    Issue.record("\(outcome)")
                    return
                }
                #expect(cause.reason == "no connection")
                #expect(cause.detail.hasPrefix("Failed to connect to 127.0.0.1 port 9"))
            }
        }
    }

    @Test func `a gateway whose certificate is not trusted gets nothing`() async throws {
        try await GatewayRig.run { rig in
            try await GatewayRig.run { _ in
            } settings: {
                $0.production =
                    GatewayEndpoint("https://127.0.0.1:\(rig.simulator.port)") ?? $0.production
            } _: { stranger in
                let outcome = try await stranger.outcome(of: .sample())
                guard case .notSent(let cause) = outcome else {
                    Issue.record("\(outcome)")
                    return
                }
                #expect(cause.reason == "the gateway's certificate is not trusted")
            }
            #expect(rig.simulator.totals.received == 0)
        }
    }

    @Test func `a gateway that speaks only HTTP 1 is refused before anything is sent`()
        async throws
    {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "belfry-http1-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var isRunning = false
        try await GatewayRig.run {
            $0.certificates = .kept(folder: folder)
        } _: { rig in
            let old = try await OldServer.start(certificatesIn: folder)
            isRunning = true
            let caFile = folder + "/" + OldServer.caName
            try await GatewayRig.run { _ in
            } settings: {
                $0.caFile = caFile
                $0.production =
                    GatewayEndpoint("https://127.0.0.1:\(old.port)") ?? $0.production
            } _: { sender in
                let outcome = try await sender.outcome(of: .sample())
                #expect(
                    outcome
                        == .notSent(
                            cause: "the gateway does not speak HTTP/2 (ALPN did not choose h2)"))
            }
            try await old.channel.close()
        }
        #expect(isRunning)
    }
}

@Suite(.timeLimit(.minutes(30))) struct GatewayShutdownTests {
    @Test func `open pushes may finish during the shutdown`() async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(.accept, times: 1),
                ScriptedAnswer(.accept, delay: .milliseconds(300) ... .milliseconds(300)))
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            rig.gateway.send(try (2...40).map { try .sample(ticket: $0) })
            _ = try await rig.simulator.pushes(count: 40, within: .patience)
            await rig.gateway.shutDown(within: .patience)
            #expect(rig.ends.all.count == 40)
            #expect(rig.ends.all.values.allSatisfy { $0 == .accepted })
        }
    }

    @Test func `a push that does not finish is unknown, and a waiting one was not sent`()
        async throws
    {
        try await GatewayRig.run {
            $0.script = .all(ScriptedAnswer(.accept, times: 1), ScriptedAnswer(.silence))
        } settings: {
            $0.streamsPerConnection = 5
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            rig.gateway.send(try (2...10).map { try .sample(ticket: $0) })
            _ = try await rig.simulator.pushes(count: 6, within: .patience)
            await rig.gateway.shutDown(within: .milliseconds(200))
            let ends = rig.ends.all
            #expect(ends.count == 10)
            let unknown = ends.values.count { if case .unknown = $0 { true } else { false } }
            let notSent = ends.values.count { $0 == .notSent(cause: "the relay is shutting down") }
            #expect(unknown == 5)
            #expect(notSent == 4)
        }
    }

    @Test func `the shutdown waits as long as answers come`() async throws {
        try await GatewayRig.run {
            $0.script = .all(
                ScriptedAnswer(.accept, times: 1),
                ScriptedAnswer(.accept, times: 3, delay: .milliseconds(300) ... .milliseconds(300)),
                ScriptedAnswer(.silence))
        } _: { rig in
            _ = try await rig.outcome(of: .sample(ticket: 1))
            rig.gateway.send(try (2...5).map { try .sample(ticket: $0) })
            _ = try await rig.simulator.pushes(count: 5, within: .patience)
            // A silent push would take up all of the patience. The silence allows for other load
            // on the machine.
            await rig.gateway.shutDown(within: .patience, silence: .seconds(10))
            let ends = rig.ends.all
            #expect(ends.values.count { $0 == .accepted } == 4)
            #expect(ends.values.count { if case .unknown = $0 { true } else { false } } == 1)
        }
    }

    /// Takes the shortest of several runs, because other load can only make a run slower.
    @Test(arguments: [true, false])
    func `a gateway without open pushes shuts down at once`(hasSent: Bool) async throws {
        var least = Duration.patience
        for _ in 0..<20 where least >= .milliseconds(60) {
            try await GatewayRig.run { rig in
                if hasSent { _ = try await rig.outcome(of: .sample()) }
                let began = ContinuousClock.now
                await rig.gateway.shutDown(within: .patience)
                least = min(least, began.duration(to: .now))
            }
        }
        // The gateway's thread checks ten times a second with connections, and once a second
        // without.
        #expect(least < .milliseconds(60))
    }

    @Test func `a gateway that was shut down reports every push as not sent`() async throws {
        try await GatewayRig.run { rig in
            await rig.gateway.shutDown(within: .zero)
            let outcome = try await rig.outcome(of: .sample())
            #expect(outcome == .notSent(cause: "the relay is shutting down"))
            await rig.gateway.shutDown(within: .zero)
        }
    }

    @Test func `a gateway that is released reports the open pushes`() async throws {
        let ends = EndCollector()
        var gateway: CurlPushGateway? = try CurlPushGateway(
            settings: CurlGatewaySettings(), world: .sample()
        ) { ends.take($0) }
        gateway?.send([])
        gateway = nil
        #expect(ends.all.isEmpty)
    }
}
