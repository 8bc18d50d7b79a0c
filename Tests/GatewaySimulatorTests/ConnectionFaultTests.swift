import Foundation
import GatewaySimulator
import NIOHTTP2
import Testing

@Suite(.timeLimit(.minutes(30))) struct ConnectionFaultTests {
    /// Runs a gateway that accepts the first push and keeps the second one open for a while.
    ///
    /// Further pushes to "bb" get the steps of `answers`.
    private func run(
        _ answers: [ScriptedAnswer], slowness: Duration = .milliseconds(50),
        _ body: (SimulatedGateway, TestSender, _ slow: Int) async throws -> Void
    ) async throws {
        try await SimulatedGateway.run {
            $0.script = AnswerScript([
                ScriptRule(
                    .device("aa"),
                    [ScriptedAnswer(.accept, delay: slowness...slowness)]),
                ScriptRule(.device("bb"), answers),
            ])
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(.numbered(1))
            let slow = sender.begin([.numbered(2, token: "aa")])[0]
            try await body(gateway, sender, slow)
        }
    }

    @Test func `a graceful GOAWAY drains and then closes`() async throws {
        try await run([ScriptedAnswer(.goAway(GoAway()))]) { gateway, sender, slow in
            let last = sender.begin([.numbered(3, token: "bb")])[0]
            let answers = [await sender.outcome(of: last), await sender.outcome(of: slow)]
            #expect(answers.map(\.summary) == ["200", "200"])
            await sender.inbox.wait { $0.isClosed }
            #expect(
                sender.inbox.read { $0.goAways } == [
                    SenderInbox.GoodBye(
                        lastStream: last, code: .noError, debugData: #"{"reason":"Shutdown"}"#)
                ])
            #expect(gateway.totals.accepted == 3)
        }
    }

    @Test func `a GOAWAY may leave the connection open`() async throws {
        let stay = GoAway(ending: .keepOpen, reason: nil)
        try await run([ScriptedAnswer(.goAway(stay))]) { gateway, sender, slow in
            let last = await sender.send(.numbered(3, token: "bb"))
            let first = await sender.outcome(of: slow)
            #expect([last.summary, first.summary] == ["200", "200"])
            #expect(gateway.totals.openConnections == 1)
            #expect(sender.inbox.read { $0.goAways.map(\.debugData) } == [""])
        }
    }

    @Test func `an abrupt GOAWAY takes back the streams after its last one`() async throws {
        let abrupt = GoAway(
            lastStream: .beforeThis, ending: .drain, errorCode: .internalError, reason: nil)
        try await run([ScriptedAnswer(.goAway(abrupt))]) { gateway, sender, slow in
            let streams = sender.begin([
                .numbered(3, token: "bb"), .numbered(4, token: "aa"),
            ])
            let answered = await sender.outcome(of: slow)
            await sender.inbox.wait { $0.isClosed }
            #expect(answered.summary == "200")
            let goAways = sender.inbox.read { $0.goAways }
            #expect(goAways.map(\.lastStream) == [streams[0] - 2])
            #expect(goAways.map(\.code) == [.internalError])
            #expect(gateway.tally(of: TestPush.apnsID(2)).accepted == 1)
            #expect(gateway.tally(of: TestPush.apnsID(3)).accepted == 0)
            #expect(gateway.tally(of: TestPush.apnsID(4)).accepted == 0)
            #expect(gateway.totals.goAwaysSent == 1)
        }
    }

    @Test func `a GOAWAY with a closed connection leaves open streams unanswered`() async throws {
        let end = GoAway(ending: .close)
        try await run([ScriptedAnswer(.goAway(end))], slowness: .seconds(3600)) {
            gateway, sender, slow in
            let last = await sender.send(.numbered(3, token: "bb"))
            let first = await sender.outcome(of: slow)
            #expect([last, first] == [.lost, .lost])
            #expect(gateway.totals.accepted == 3)
            #expect(gateway.totals.answered == 1)
        }
    }

    @Test(arguments: ConnectionEnd.allCases)
    func `a connection can end without a GOAWAY`(end: ConnectionEnd) async throws {
        try await run([ScriptedAnswer(.closeConnection(end))], slowness: .seconds(3600)) {
            gateway, sender, slow in
            let last = await sender.send(.numbered(3, token: "bb"))
            let first = await sender.outcome(of: slow)
            #expect([last, first] == [.lost, .lost])
            #expect(sender.inbox.read { $0.goAways } == [])
            let totals = try await gateway.totals(within: .seconds(300)) {
                $0.openConnections == 0
            }
            #expect(totals.accepted == 3)
        }
    }

    @Test func `a frozen connection neither reads nor answers, and others go on`() async throws {
        try await run([ScriptedAnswer(.freezeConnection)], slowness: .seconds(3600)) {
            gateway, sender, _ in
            sender.begin([.numbered(3, token: "bb")])
            _ = try await gateway.pushes(count: 3, within: .seconds(300))
            sender.begin([.numbered(4), .numbered(5)])
            let other = try await TestSender.connect(to: gateway)
            let outcome = await other.send(.numbered(6))
            #expect(outcome.summary == "200")
            #expect(gateway.totals.received == 4)
            #expect(gateway.totals.answered == 2)
        }
    }

    @Test func `a stopped gateway closes its connections`() async throws {
        let gateway = try await SimulatedGateway.start()
        let sender = try await TestSender.connect(to: gateway)
        await sender.send(TestPush())
        await gateway.stop()
        await sender.inbox.wait { $0.isClosed }
        await #expect(throws: (any Error).self) { try await TestSender.connect(to: gateway) }
    }

    @Test func `connections can be closed while the gateway goes on`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(TestPush())
            await gateway.closeConnections()
            await sender.inbox.wait { $0.isClosed }
            let next = try await TestSender.connect(to: gateway)
            let outcome = await next.send(TestPush())
            #expect(outcome.summary == "200")
            #expect(gateway.pushes.map(\.connection) == [1, 2])
        }
    }
}
