import Gateway
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

@Suite struct OutcomeJudgeTests {
    private let judge = OutcomeJudge(
        retries: RetryPolicy(base: .seconds(2), cap: .seconds(900), maximumAttempts: 3),
        pause: .seconds(60))
    private let now = Fixtures.moment.advanced(by: .seconds(100))

    private func verdict(
        _ outcome: PushOutcome, _ delivery: OwedDelivery = Fixtures.delivery(at: 1),
        attempts: UInt16 = 0
    ) -> OutcomeJudge.Verdict {
        var generator = SeededGenerator(seed: 7)
        return judge.judge(
            outcome, of: delivery, attempts: attempts, at: now, using: &generator)
    }

    private func refusal(
        _ status: Int, _ reason: String, _ reaction: GatewayReaction
    ) -> PushOutcome {
        .refused(GatewayRefusal(status: status, reason: reason, reaction: reaction))
    }

    private func step(_ verdict: OutcomeJudge.Verdict) -> SettledStep {
        var step = SettledStep(from: .start, to: .start)
        verdict.resolution.record(in: &step, origin: .log)
        return step
    }

    @Test func `an accepted push leaves a receipt and nothing else`() {
        let step = step(verdict(.accepted))
        #expect(step.receipts.map(\.outcome) == [.accepted])
        #expect(step.receipts.map(\.attempt) == [1])
        #expect(step.retries == [])
        #expect(step.deadLetters == [])
    }

    @Test(arguments: [
        PushOutcome.unknown(cause: "connection lost"), .notSent(cause: "no connection"),
    ])
    func `a transport error is tried again with the same identity`(outcome: PushOutcome) {
        let step = step(verdict(outcome))
        #expect(step.receipts.map(\.outcome) == [.deferred])
        #expect(step.retries.map(\.delivery) == [Fixtures.delivery(at: 1)])
        #expect(step.retries.map(\.attempts) == [1])
    }

    @Test func `the last attempt ends as a dead letter that says why`() {
        let step = step(verdict(.unknown(cause: "connection lost"), attempts: 2))
        #expect(step.deadLetters.map(\.reason) == ["attempts used up: connection lost"])
        #expect(step.deadLetters.map(\.attempts) == [3])
    }

    @Test func `a delivery whose notification expires before the next attempt ends`() {
        let delivery = Fixtures.delivery(at: 1, expiration: now)
        let step = step(verdict(.unknown(cause: "connection lost"), delivery))
        #expect(step.deadLetters.map(\.reason) == ["expired: connection lost"])
    }

    @Test func `the gateway's wish to wait is the least`() {
        let asked = refusal(
            429, "TooManyRequests", .retry(after: .seconds(300), scope: .device))
        let due = verdict(asked).resolution.dueAt
        #expect(due.map { $0 >= now.advanced(by: .seconds(300)) } == true)
        #expect(due.map { $0 <= now.advanced(by: .seconds(331)) } == true)
    }

    @Test func `a wish to wait for ever is granted a day at the most`() {
        let asked = refusal(
            503, "ServiceUnavailable", .retry(after: .seconds(Int64.max), scope: .gateway))
        let due = verdict(asked).resolution.dueAt
        #expect(due.map { $0 <= now.advanced(by: .seconds(95_040)) } == true)
        #expect(due.map { $0 >= now.advanced(by: .seconds(86_400)) } == true)
    }

    @Test func `a token that is dead since after its registration is forgotten`() {
        let since = Fixtures.moment.advanced(by: .seconds(1))
        let step = step(
            verdict(refusal(410, "Unregistered", .forgetDeviceToken(.dead(since: since)))))
        #expect(step.receipts.map(\.outcome) == [.unregistered])
        #expect(step.deadTokens.map(\.since) == [since])
        #expect(step.deadLetters.count == 1)
    }

    @Test func `a token that was registered after the gateway's verdict stays`() {
        let since = Fixtures.moment.advanced(by: .seconds(-1))
        let step = step(
            verdict(refusal(410, "Unregistered", .forgetDeviceToken(.dead(since: since)))))
        #expect(step.deadTokens == [])
        #expect(step.retries.count == 1)
    }

    @Test func `a malformed request is never sent again`() {
        let step = step(verdict(refusal(400, "BadTopic", .deadLetter)))
        #expect(step.deadLetters.map(\.status) == [400])
        #expect(step.deadTokens == [])
    }

    @Test func `refused credentials pause the container without using up an attempt`() {
        let verdict = verdict(refusal(403, "InvalidProviderToken", .pauseContainer), attempts: 1)
        let step = step(verdict)
        #expect(
            verdict.halt
                == OutcomeJudge.Halt(
                    scope: .container, until: now.advanced(by: .seconds(60)),
                    pause: .seconds(60), reason: "InvalidProviderToken"))
        #expect(step.retries.map(\.attempts) == [1])
    }

    @Test func `a gateway that may have erred is tried again sooner`() {
        var doubtful = Gateway.GatewayRefusal(
            status: 403, reason: "ExpiredProviderToken", reaction: .pauseContainer)
        doubtful.trialAfter = .seconds(4)
        let verdict = verdict(.refused(doubtful))
        #expect(
            verdict.halt
                == OutcomeJudge.Halt(
                    scope: .container, until: now.advanced(by: .seconds(4)), pause: .seconds(4),
                    reason: "ExpiredProviderToken"))
    }
}

@Suite struct RetryPolicyTests {
    private let policy = RetryPolicy(
        base: .seconds(2), cap: .seconds(100), maximumAttempts: 30)

    @Test(arguments: Seeds.all) func `waits are drawn from steps that double up to the cap`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        for attempts in UInt16(1)..<30 {
            let step = min(2.0 * Double(UInt64(1) << UInt64(attempts - 1)), 100)
            let due = policy.dueAt(
                afterAttempts: attempts, now: Fixtures.moment, expiration: nil, atLeast: nil,
                using: &generator)
            let wait = due?.duration(since: Fixtures.moment) ?? .seconds(-1)
            #expect((Duration.zero..<Duration.seconds(step)).contains(wait))
        }
    }

    @Test func `there is no attempt after the last`() {
        var generator = SeededGenerator(seed: 1)
        let due = policy.dueAt(
            afterAttempts: 30, now: Fixtures.moment, expiration: nil, atLeast: nil,
            using: &generator)
        #expect(due == nil)
    }
}

@Suite struct TokenVerdictBreakerTests {
    @Test func `a few unknown tokens are forgotten, a flood of them is not`() {
        var breaker = TokenVerdictBreaker()
        var forgotten = 0
        for _ in 0..<500 {
            let mayForget = breaker.mayForget(
                isUnknownToGateway: true, container: Fixtures.container, topic: "com.example.art")
            if mayForget { forgotten += 1 }
        }
        #expect(forgotten == TokenVerdictBreaker.leastAnswers - 1)
    }

    @Test func `among many good tokens the bad ones are forgotten`() {
        var breaker = TokenVerdictBreaker()
        var isAlwaysAllowed = true
        for number in 0..<5000 {
            let mayForget = breaker.mayForget(
                isUnknownToGateway: number % 10 == 0, container: Fixtures.container,
                topic: "com.example.art")
            isAlwaysAllowed = isAlwaysAllowed && mayForget
        }
        #expect(isAlwaysAllowed)
    }
}

@Suite struct DeadTokenMemoryTests {
    private func dead(_ number: Int, since: Int64) -> DeadToken {
        DeadToken(
            container: Fixtures.container, token: Fixtures.token(number),
            since: Fixtures.moment.advanced(by: .seconds(since)))
    }

    @Test func `a token is dead for registrations before the verdict only`() {
        var memory = DeadTokenMemory()
        // Fixtures' devices are registered at the moment, with token 1.
        let delivery = Fixtures.delivery(at: 1).delivery
        #expect(!memory.holds(delivery))
        memory.insert(dead(1, since: -1))
        #expect(!memory.holds(delivery))
        memory.insert(dead(1, since: 0))
        #expect(memory.holds(delivery))
    }

    @Test func `the oldest verdicts are forgotten first`() {
        var memory = DeadTokenMemory(limit: 2)
        let delivery = Fixtures.delivery(at: 1).delivery
        memory.insert(dead(1, since: 0))
        memory.insert(dead(2, since: 0))
        #expect(memory.holds(delivery))
        memory.insert(dead(3, since: 0))
        #expect(!memory.holds(delivery))
    }
}
