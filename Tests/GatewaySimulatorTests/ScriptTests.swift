import Foundation
import GatewaySimulator
import NIOHTTP2
import Testing

@Suite(.timeLimit(.minutes(30))) struct ScriptTests {
    /// Sends pushes 1, 2, … one after another, and returns their outcomes.
    private func outcomes(
        of script: AnswerScript, count: Int, tokens: [String] = [TestPush.token]
    ) async throws -> [String] {
        var summaries: [String] = []
        try await SimulatedGateway.run {
            $0.script = script
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in 0..<count {
                let push = TestPush.numbered(number, token: tokens[number % tokens.count])
                summaries.append(await sender.send(push).summary)
            }
        }
        return summaries
    }

    @Test func `steps are used up in order, and then pushes are accepted`() async throws {
        let unavailable = GatewayRefusal(status: 503, reason: "ServiceUnavailable")
        let script = AnswerScript.all(
            ScriptedAnswer(.accept, times: 1), ScriptedAnswer(.refuse(unavailable), times: 2))
        let refused = CheckCase.refused(503, "ServiceUnavailable")
        #expect(
            try await outcomes(of: script, count: 4) == ["200", refused, refused, "200"])
    }

    @Test func `the first rule with steps left decides`() async throws {
        let tooMany = ScriptedAnswer(
            .refuse(GatewayRefusal(status: 429, reason: "TooManyRequests")), times: 1)
        let script = AnswerScript([
            ScriptRule(.device("AA"), [tooMany]),
            ScriptRule(.eachDevice, [ScriptedAnswer(.accept, times: 1), tooMany]),
        ])
        let refused = CheckCase.refused(429, "TooManyRequests")
        let summaries = try await outcomes(of: script, count: 8, tokens: ["aa", "bb"])
        #expect(
            summaries == [refused, "200", "200", refused, refused, "200", "200", "200"])
    }

    @Test func `each push can fail some times before it is accepted`() async throws {
        let failure = GatewayRefusal(status: 500, reason: "InternalServerError")
        try await SimulatedGateway.run {
            $0.script = AnswerScript([
                ScriptRule(.eachPush, [ScriptedAnswer(.refuse(failure), times: 2)])
            ])
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in [1, 2, 1, 2, 1, 2] { await sender.send(.numbered(number)) }
            for number in [1, 2] {
                var expected = PushTally()
                expected.received = 3
                expected.accepted = 1
                expected.answered = 3
                #expect(gateway.tally(of: TestPush.apnsID(number)) == expected)
            }
            #expect(gateway.totals.refusals == ["InternalServerError": 4])
        }
    }

    @Test func `a refusal can ask the sender to wait`() async throws {
        let refusal = GatewayRefusal(status: 429, reason: "TooManyRequests", retryAfter: 7)
        try await SimulatedGateway.run {
            $0.script = .all(ScriptedAnswer(.refuse(refusal)))
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let outcome = await sender.send(.numbered(1))
            #expect(
                outcome
                    == .answered(
                        status: 429,
                        headers: [
                            ":status": "429", "apns-id": TestPush.apnsID(1),
                            "content-type": "application/json", "retry-after": "7",
                        ], body: #"{"reason":"TooManyRequests"}"#))
        }
    }

    @Test func `an answer need not be JSON`() async throws {
        let page = GatewayAnswer.raw(status: 502, contentType: "text/html", body: "<h1>Bad</h1>")
        #expect(
            try await outcomes(of: .all(ScriptedAnswer(page, times: 1)), count: 2)
                == ["502 <h1>Bad</h1>", "200"])
    }

    @Test func `streams are reset in three ways`() async throws {
        let script = AnswerScript.all(
            ScriptedAnswer(.resetStream(.refused), times: 1),
            ScriptedAnswer(.resetStream(.cancelled), times: 1),
            ScriptedAnswer(.resetStream(.internalError), times: 1))
        try await SimulatedGateway.run {
            $0.script = script
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            var codes: [SenderOutcome] = []
            for number in 0..<4 { codes.append(await sender.send(.numbered(number))) }
            #expect(
                codes.prefix(3) == [
                    .reset(.refusedStream), .reset(.cancel), .reset(.internalError),
                ])
            #expect(codes[3].summary == "200")
            #expect(gateway.pushes.map(\.isAccepted) == [false, true, true, true])
            #expect(gateway.pushes.map(\.isAnswered) == [false, false, false, true])
        }
    }

    @Test func `a step can say whether the push counts as accepted`() async throws {
        let script = AnswerScript.all(
            ScriptedAnswer(.resetStream(.cancelled), times: 1, accounting: .notAccepted),
            ScriptedAnswer(.silence, times: 1, accounting: .accepted))
        try await SimulatedGateway.run {
            $0.script = script
            $0.initialStreamLimit = 10
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            sender.begin([.numbered(1), .numbered(2)])
            let pushes = try await gateway.pushes(count: 2, within: .seconds(300))
            #expect(pushes.map(\.isAccepted) == [false, true])
        }
    }

    @Test func `a silent gateway answers later pushes and can be given up on`() async throws {
        try await SimulatedGateway.run {
            $0.script = .all(ScriptedAnswer(.accept, times: 1), ScriptedAnswer(.silence, times: 1))
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            await sender.send(.numbered(1))
            let silent = sender.begin([.numbered(2)])[0]
            let third = await sender.send(.numbered(3))
            #expect(third.summary == "200")
            sender.cancel(silent)
            let totals = try await gateway.totals(within: .seconds(300)) {
                $0.abandonedStreams == 1
            }
            #expect(totals.answered == 2)
        }
    }

    @Test func `delays are drawn from their range and let others pass`() async throws {
        let slow = ScriptedAnswer(
            .accept, times: 1, delay: .milliseconds(300) ... .milliseconds(320))
        try await SimulatedGateway.run {
            $0.script = AnswerScript([ScriptRule(.device("aa"), [slow])])
            $0.initialStreamLimit = 10
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let start = ContinuousClock.now
            let streams = sender.begin([.numbered(1, token: "aa"), .numbered(2, token: "bb")])
            for stream in streams { _ = await sender.outcome(of: stream) }
            #expect(sender.inbox.read { $0.order } == [streams[1], streams[0]])
            #expect(ContinuousClock.now - start >= .milliseconds(300))
        }
    }

    @Test func `another script can be set at any time`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let before = await sender.send(.numbered(1))
            gateway.play(
                .all(ScriptedAnswer(.refuse(GatewayRefusal(status: 503, reason: "Shutdown")))))
            let after = await sender.send(.numbered(2))
            #expect(
                [before.summary, after.summary] == ["200", CheckCase.refused(503, "Shutdown")])
        }
    }
}
