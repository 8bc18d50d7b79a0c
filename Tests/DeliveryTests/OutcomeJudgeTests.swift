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
        (PushOutcome.unknown(cause: "connection lost"), UInt16(1)),
        (.notSent(cause: "no connection"), 0),
    ])
    func `a transport error is tried again with the same identity`(
        outcome: PushOutcome, attempts: UInt16
    ) {
        let step = step(verdict(outcome))
        #expect(step.receipts.map(\.outcome) == [.deferred])
        #expect(step.retries.map(\.delivery) == [Fixtures.delivery(at: 1)])
        #expect(step.retries.map(\.attempts) == [attempts])
    }

    @Test func `the last attempt becomes a dead letter with its reason`() {
        let answer = refusal(
            500, "InternalServerError", .retry(after: nil, scope: .delivery))
        let step = step(verdict(answer, attempts: 2))
        #expect(step.deadLetters.map(\.reason) == ["attempts used up: InternalServerError"])
        #expect(step.deadLetters.map(\.attempts) == [3])
    }

    @Test(
        arguments: [
            PushOutcome.unknown(cause: "connection lost"), .notSent(cause: "no connection"),
        ], Seeds.all)
    func `a delivery outlives any outage that is shorter than its expiration`(
        outcome: PushOutcome, seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        var moment = Fixtures.moment
        let expiration = moment.advanced(by: .seconds(30 * 86_400))
        var retry = Retry(
            delivery: Fixtures.delivery(at: 1, expiration: expiration), attempts: 2,
            dueAt: moment, reason: .said(""))
        var tries = 0
        while moment < Fixtures.moment.advanced(by: .seconds(20 * 86_400)) {
            let verdict = judge.judge(
                outcome, of: retry.delivery, attempts: retry.attempts, unanswered: tries,
                at: moment, using: &generator)
            retry = try #require(step(verdict).retries.first)
            moment = retry.dueAt
            tries += 1
        }
        #expect(retry.attempts == 2)
        // Twenty days of steps of a quarter of an hour, of which half is drawn on average.
        #expect((1500...6000).contains(tries))
    }

    @Test func `a delivery whose notification expires before the next attempt ends`() {
        let delivery = Fixtures.delivery(at: 1, expiration: now)
        let step = step(verdict(.unknown(cause: "connection lost"), delivery))
        #expect(step.deadLetters.map(\.reason) == ["expired: connection lost"])
    }

    // MARK: Deadlines

    @Test func `a push that expires at once is owed one send, and an unsent attempt is none`() {
        let delivery = Fixtures.delivery(at: 1, expiration: Fixtures.moment)
        let notSent = PushOutcome.notSent(cause: "no connection")
        let paused = refusal(403, "InvalidProviderToken", .pauseContainer)
        for outcome in [notSent, paused] {
            #expect(step(verdict(outcome, delivery)).retries.map(\.attempts) == [0])
        }
        let lost = step(verdict(.unknown(cause: "connection lost"), delivery))
        #expect(lost.deadLetters.map(\.reason) == ["expired: connection lost"])
        let answered = refusal(503, "ServiceUnavailable", .retry(after: nil, scope: .gateway))
        #expect(
            step(verdict(answered, delivery)).deadLetters.map(\.reason)
                == ["expired: ServiceUnavailable"])
        #expect(
            judge.ending(ofUnsent: delivery, attempts: 0, .said("no connection"), at: now) == nil)
        let late = Fixtures.moment.advanced(by: OutcomeJudge.atOnceBound)
        let ending = judge.ending(ofUnsent: delivery, attempts: 0, .said("no connection"), at: late)
        #expect(ending?.ending == .expired)
    }

    @Test(arguments: Seeds.all) func `a random wait never passes a near deadline`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let expiration = now.advanced(by: .seconds(5))
        let delivery = Fixtures.delivery(at: 1, expiration: expiration)
        for unanswered in 0..<40 {
            let verdict = judge.judge(
                .notSent(cause: "no connection"), of: delivery, attempts: 0,
                unanswered: unanswered, at: now, using: &generator)
            #expect(verdict.resolution.dueAt.map { $0 < expiration } == true)
        }
    }

    @Test(arguments: [(49, false), (51, true)])
    func `a gateway's wish to wait is not shortened for a deadline`(tenths: Int, isDead: Bool) {
        let delivery = Fixtures.delivery(at: 1, expiration: now.advanced(by: .seconds(5)))
        let answer = refusal(
            429, "TooManyRequests",
            .retry(after: .milliseconds(tenths * 100), scope: .device))
        let resolution = verdict(answer, delivery).resolution
        #expect((resolution.ending == .expired) == isDead)
        let least = now.advanced(by: .milliseconds(tenths * 100))
        #expect(resolution.dueAt.map { least <= $0 } ?? isDead)
    }

    @Test func `a redriven delivery that ends again has one end in its reason`() {
        let delivery = Fixtures.delivery(at: 1, expiration: now)
        for reason in ["expired: no connection", "attempts used up: no connection"] {
            let ending = judge.ending(
                ofUnsent: delivery, attempts: 0, WaitReason(stored: reason), at: now)
            var step = SettledStep(from: .start, to: .start)
            ending?.record(in: &step, origin: .retry)
            #expect(step.deadLetters.map(\.reason) == ["expired: no connection"])
        }
    }

    // MARK: Fresh connections

    @Test func `a push that needs another connection goes at once, without an attempt`() {
        let answer = refusal(503, "Shutdown", .retryOnFreshConnection)
        let first = verdict(answer).resolution
        #expect(first.dueAt == now)
        #expect(step(verdict(answer)).retries.map(\.attempts) == [0])
        var generator = SeededGenerator(seed: 7)
        let second = judge.judge(
            answer, of: Fixtures.delivery(at: 1), attempts: 0, unanswered: 1, at: now,
            using: &generator)
        #expect(step(second).retries.map(\.attempts) == [1])
        #expect(second.resolution.dueAt.map { now < $0 } == true)
    }

    // MARK: Answers

    @Test func `the gateway's wish to wait is a minimum`() {
        let asked = refusal(
            429, "TooManyRequests", .retry(after: .seconds(300), scope: .device))
        let due = verdict(asked).resolution.dueAt
        #expect(due.map { $0 >= now.advanced(by: .seconds(300)) } == true)
        #expect(due.map { $0 <= now.advanced(by: .seconds(331)) } == true)
    }

    @Test func `a wish to wait forever is capped at a day`() {
        let asked = refusal(
            429, "TooManyRequests", .retry(after: .seconds(Int64.max), scope: .device))
        let due = verdict(asked).resolution.dueAt
        #expect(due.map { $0 <= now.advanced(by: .seconds(95_040)) } == true)
        #expect(due.map { $0 >= now.advanced(by: .seconds(86_400)) } == true)
    }

    @Test func `a token that died after its registration is forgotten`() {
        let since = Fixtures.moment.advanced(by: .seconds(1))
        let step = step(
            verdict(refusal(410, "Unregistered", .forgetDeviceToken(.dead(since: since)))))
        #expect(step.receipts.map(\.outcome) == [.unregistered])
        #expect(step.deadTokens.map(\.since) == [since])
        #expect(step.deadLetters.count == 1)
    }

    @Test func `a token that was registered after the gateway's verdict is kept`() {
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
                    scope: .container(.development), until: now.advanced(by: .seconds(60)),
                    pause: .seconds(60), reason: "InvalidProviderToken"))
        #expect(step.retries.map(\.attempts) == [1])
    }

    @Test func `an answer that may be the gateway's error is tried again sooner`() {
        var doubtful = Gateway.GatewayRefusal(
            status: 403, reason: "ExpiredProviderToken", reaction: .pauseContainer)
        doubtful.trialAfter = .seconds(4)
        let verdict = verdict(.refused(doubtful))
        #expect(
            verdict.halt
                == OutcomeJudge.Halt(
                    scope: .container(.development), until: now.advanced(by: .seconds(4)),
                    pause: .seconds(4), reason: "ExpiredProviderToken"))
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
                afterFailures: Int(attempts), now: Fixtures.moment, deadline: nil, atLeast: nil,
                using: &generator)
            let wait = due?.duration(since: Fixtures.moment) ?? .seconds(-1)
            #expect((Duration.zero..<Duration.seconds(step)).contains(wait))
        }
    }
}

@Suite struct DeadTokenMemoryTests {
    private func dead(_ number: Int, since: Int64) -> DeadToken {
        DeadToken(
            container: Fixtures.container, token: Fixtures.token(number),
            since: Fixtures.moment.advanced(by: .seconds(since)))
    }

    @Test func `a token is dead only for registrations before the verdict`() {
        var memory = DeadTokenMemory()
        // The devices of `Fixtures` are registered at `Fixtures.moment`, and this one has token 1.
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
