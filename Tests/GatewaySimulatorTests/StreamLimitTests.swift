import Foundation
import GatewaySimulator
import NIOHTTP2
import Testing

@Suite(.timeLimit(.minutes(30))) struct StreamLimitTests {
    @Test func `the limit is one until a valid provider token was answered`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(TestPush().with(["authorization": nil]))
            #expect(sender.inbox.read { $0.limits } == [1])
            await sender.send(TestPush().with(["apns-topic": nil]))
            await sender.inbox.wait { $0.limits == [1, 1000] }
            #expect(gateway.totals.streamLimitViolations == 0)
        }
    }

    @Test(arguments: OverLimitPolicy.allCases)
    func `streams before the limit is known follow their own policy`(
        policy: OverLimitPolicy
    ) async throws {
        try await SimulatedGateway.run {
            $0.overLimitBeforeAcknowledgement = policy
            $0.script = .all(
                ScriptedAnswer(.accept, delay: .milliseconds(300) ... .milliseconds(300)))
        } _: { gateway in
            let sender = try await TestSender.connect(
                to: gateway, early: (1...3).map { .numbered($0) })
            var summaries: [String] = []
            for stream in [1, 3, 5] { summaries.append(await sender.outcome(of: stream).summary) }
            switch policy {
            case .serves: #expect(summaries == ["200", "200", "200"])
            case .refuses: #expect(summaries == ["200", "reset 7", "reset 7"])
            case .sendsGoAway:
                #expect(summaries == ["lost", "lost", "lost"])
                #expect(sender.inbox.read { $0.goAways.map(\.code) } == [.enhanceYourCalm])
            }
            let violations = gateway.streamLimitViolations
            #expect(violations.allSatisfy { !$0.isAcknowledged && $0.limit == 1 })
            #expect(violations.first?.stream == 3)
            #expect(violations.first?.openStreams == 2)
            #expect(gateway.totals.violationsBeforeAcknowledgement == violations.count)
        }
    }

    @Test func `streams beyond a limit that was acknowledged are refused`() async throws {
        try await SimulatedGateway.run {
            $0.streamLimit = 2
            $0.overLimitBeforeAcknowledgement = .serves
            $0.script = .all(ScriptedAnswer(.accept, times: 1), ScriptedAnswer(.silence))
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(.numbered(1))
            await sender.inbox.wait { $0.limits == [1, 2] }
            let streams = sender.begin((2...4).map { .numbered($0) })
            let refused = await sender.outcome(of: streams[2])
            #expect(refused == .reset(.refusedStream))
            #expect(
                gateway.streamLimitViolations == [
                    StreamLimitViolation(
                        connection: 1, stream: 7, openStreams: 3, limit: 2, isAcknowledged: true)
                ])
            #expect(gateway.totals.received == 3)
        }
    }

    @Test func `a script can change the limit`() async throws {
        try await SimulatedGateway.run {
            $0.script = .all(
                ScriptedAnswer(.accept, times: 1),
                ScriptedAnswer(.acceptLimitingStreams(to: 5), times: 1))
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in 1...3 { await sender.send(.numbered(number)) }
            #expect(sender.inbox.read { $0.limits } == [1, 1000, 5])
        }
    }

    @Test func `a refusal can shrink the limit until the next acceptance`() async throws {
        let forbidden = GatewayRefusal(status: 403, reason: "Forbidden")
        try await SimulatedGateway.run {
            $0.afterRejection = .shrinksStreamLimitAndRefusesOpenStreams
            $0.script = AnswerScript([
                ScriptRule(.device("aa"), [ScriptedAnswer(.silence, accounting: .accepted)]),
                ScriptRule(.device("bb"), [ScriptedAnswer(.refuse(forbidden))]),
            ])
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(.numbered(1))
            let silent = sender.begin([.numbered(2, token: "aa")])[0]
            await sender.send(.numbered(3, token: "bb"))
            let outcome = await sender.outcome(of: silent)
            #expect(outcome == .reset(.refusedStream))
            #expect(gateway.tally(of: TestPush.apnsID(2)).accepted == 0)
            await sender.send(.numbered(4))
            await sender.inbox.wait { $0.limits == [1, 1000, 1, 1000] }
        }
    }

    @Test func `the settings can come late`() async throws {
        try await SimulatedGateway.run {
            $0.settingsDelay = .milliseconds(100)
            $0.overLimitBeforeAcknowledgement = .serves
        } _: { gateway in
            let start = ContinuousClock.now
            let sender = try await TestSender.connect(
                to: gateway, early: (1...20).map { .numbered($0) })
            _ = try await gateway.pushes(count: 20, within: .seconds(300))
            for stream in stride(from: 1, to: 40, by: 2) {
                let outcome = await sender.outcome(of: stream)
                #expect(outcome.summary == "200")
            }
            #expect(ContinuousClock.now - start >= .milliseconds(90))
            #expect(sender.inbox.read { $0.limits }.first == 1)
        }
    }

    @Test func `a guard against rapid resets ends the connection`() async throws {
        try await SimulatedGateway.run {
            $0.resetGuard = ResetGuard(maximumCount: 3, window: .seconds(60))
            $0.script = .all(ScriptedAnswer(.silence))
            $0.overLimitBeforeAcknowledgement = .serves
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in 1...5 { sender.cancel(sender.begin([.numbered(number)])[0]) }
            await sender.inbox.wait { $0.isClosed }
            #expect(sender.inbox.read { $0.goAways.map(\.code) } == [.enhanceYourCalm])
            #expect(gateway.totals.protocolErrors == 1)
        }
    }

    @Test func `a limit of requests ends the connection after the last of them`() async throws {
        try await SimulatedGateway.run {
            $0.requestLimit = RequestLimit(count: 3)
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(.numbered(1))
            await sender.inbox.wait { $0.limits == [1, 1000] }
            await sender.send(.numbered(2))
            #expect(sender.inbox.read { $0.goAways } == [])
            let last = await sender.send(.numbered(3))
            #expect(last.summary == "200")
            let totals = try await gateway.totals(within: .seconds(300)) { $0.openConnections == 0 }
            let goAways = sender.inbox.read { $0.goAways }
            #expect(goAways.map(\.lastStream) == [5])
            #expect(goAways.map(\.code) == [.noError])
            #expect(totals.received == 3)
            #expect(totals.protocolErrors == 0)
        }
    }

    @Test func `without the guard a sender may reset as it likes`() async throws {
        try await SimulatedGateway.run {
            $0.script = .all(ScriptedAnswer(.accept, times: 1), ScriptedAnswer(.silence))
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(.numbered(0))
            for number in 1...500 { sender.cancel(sender.begin([.numbered(number)])[0]) }
            let totals = try await gateway.totals(within: .seconds(300)) {
                $0.abandonedStreams == 500
            }
            #expect(totals.openConnections == 1)
            #expect(totals.protocolErrors == 0)
        }
    }
}
