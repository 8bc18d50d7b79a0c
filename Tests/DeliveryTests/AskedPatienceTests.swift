import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import Delivery

/// A halt that the gateway asks for is like any other: it is shown, bounded, tried, and can be
/// ended by hand.
@Suite struct AskedPatienceTests {
    private static func refusal(after seconds: Int) -> PushOutcome {
        .refused(
            GatewayRefusal(
                status: 503, reason: "ServiceUnavailable", retryAfter: .seconds(seconds),
                reaction: .retry(after: .seconds(seconds), scope: .gateway)))
    }

    @Test func `a wish to wait for years is capped at a day, tried ever later, and ended by hand`()
        async throws
    {
        let bench = try await WorkerBench(window: 256) { request, _ in
            request.container == Fixtures.container ? Self.refusal(after: 999_999_999) : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            let halt = try #require(bench.worker.halts.first)
            #expect(halt.scope == .gateway(.development))
            #expect(halt.scope.words == "gateway, development")
            #expect(halt.reason == "the gateway asks for a pause: 503 ServiceUnavailable")
            #expect(halt.asked?.duration(since: halt.since) == .seconds(86_400))
            #expect(halt.until.duration(since: halt.since) == .seconds(30))
            #expect(bench.metrics["belfry_halts"] == 1)
            // Other containers with the same key go on, and new deliveries of this one wait.
            try await bench.accept(
                deliveries(2...9) { $0.container = WorkerBench.otherContainer })
            try await bench.accept(10...40)
            #expect(await bench.passed(40))
            #expect(bench.gateway.requests.count == 9)
            // The gateway is tried after 30 s, then after 60 s, 120 s and so on.
            let began = bench.clock.moment
            let isTried = await bench.advance(by: .seconds(10)) {
                bench.gateway.requests.count >= 13
            }
            #expect(isTried)
            #expect(bench.clock.moment.duration(since: began) >= .seconds(30 + 60 + 120 + 240))
            #expect(try #require(bench.worker.halts.first).since <= began)
            bench.gateway.follow { _, _ in .accepted }
            #expect(bench.worker.resume(Fixtures.container) == 1)
            let done = try await bench.advance(by: .seconds(60)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(bench.worker.halts.isEmpty)
        #expect(try await bench.deadLetters.isEmpty)
        #expect(bench.metrics["belfry_halts"] == 0)
    }

    @Test func `an accepted push ends the halt before its time`() async throws {
        let bench = try await WorkerBench { _, attempt in
            attempt == 1 ? Self.refusal(after: 86_400) : .accepted
        }
        try await bench.run {
            try await bench.accept(1...5)
            #expect(await bench.passed(5))
            #expect(bench.worker.halts.count == 1)
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(bench.clock.moment.duration(since: Fixtures.moment) < .seconds(86_400))
        #expect(bench.worker.halts.isEmpty)
    }

    // MARK: Little traffic

    @Test(arguments: [PushOutcome.notSent(cause: "no connection"), nil])
    func `an unreachable gateway is reported even with little traffic`(
        outcome: PushOutcome?
    ) async throws {
        let bench = try await WorkerBench { _, _ in outcome }
        try await bench.run {
            try await bench.accept(1...1)
            // A delivery that is never answered is passed once the clock moves on.
            if outcome != nil { #expect(await bench.passed(1)) }
            let isTold = await bench.advance(by: .milliseconds(500)) {
                !bench.worker.halts.isEmpty
            }
            #expect(isTold)
            let cause = outcome == nil ? "no answer" : "no connection"
            #expect(
                bench.worker.halts.map(\.reason) == ["the gateway cannot be used: \(cause)"])
            // The metric is set only after the decision.
            let isShown = await Turns.yield { bench.metrics["belfry_halts"] == 1 }
            #expect(isShown)
            let isLogged = await Turns.yield {
                bench.log.lines.contains { $0.contains("paused deliveries") }
            }
            #expect(isLogged)
        }
    }

    @Test func `lasting failures count after ten seconds, even a single one`() {
        var breaker = GatewayBreaker()
        let delivery = Fixtures.delivery(at: 1).delivery
        let isMany = breaker.note(.unknown(cause: "lost"), of: delivery, at: Fixtures.moment)
        #expect(isMany == nil)
        let told = (1...10).first { second in
            let now = Fixtures.moment.advanced(by: .seconds(second))
            return breaker.look(at: now).map(\.halt.reason)
                == ["the gateway cannot be used: lost"]
        }
        // The breaker is looked at once a second.
        #expect(told.map { $0 < 10 } == true)
        #expect(breaker.look(at: Fixtures.moment).isEmpty)
        // The next trial that fails doubles the wait.
        let later = Fixtures.moment.advanced(by: .seconds(60))
        let next = breaker.note(.unknown(cause: "lost"), of: delivery, at: later)
        #expect(next?.pause == .seconds(2))
        var other = GatewayBreaker()
        _ = other.note(.unknown(cause: "lost"), of: delivery, at: Fixtures.moment)
        _ = other.note(.accepted, of: delivery, at: Fixtures.moment)
        #expect((1...20).allSatisfy { _ in other.look(at: later).isEmpty })
    }

    @Test func `a gateway that hangs counts after ten seconds, whatever was sent to it`() {
        let delivery = Fixtures.delivery(at: 1).delivery
        func halted(_ breaker: inout GatewayBreaker, from second: Int) -> Int? {
            (second...20).first { second in
                let now = Fixtures.moment.advanced(by: .seconds(second))
                return breaker.look(at: now).map(\.halt.reason)
                    == ["the gateway cannot be used: no answer"]
            }
        }
        // A delivery of the log is adopted two to three seconds after it was sent.
        var adopting = GatewayBreaker()
        let adopted = adopting.noteSilence(
            in: RetryLane(of: delivery), since: Fixtures.moment.advanced(by: .seconds(1)),
            at: Fixtures.moment.advanced(by: .seconds(3)))
        #expect(adopted == nil)
        let isTold = halted(&adopting, from: 4).map { $0 < 10 }
        #expect(isTold == true)
        // One that had waited is not adopted.
        var waiting = GatewayBreaker()
        waiting.noteSending(of: delivery)
        waiting.noteSending(of: delivery)
        let isWaitingTold = halted(&waiting, from: 1).map { $0 < 10 }
        #expect(isWaitingTold == true)
        // Any answer ends the count.
        var answered = GatewayBreaker()
        answered.noteSending(of: delivery)
        #expect((1...5).allSatisfy { _ in answered.look(at: Fixtures.moment).isEmpty })
        _ = answered.note(.accepted, of: delivery, at: Fixtures.moment)
        let afterAnswer = halted(&answered, from: 6)
        #expect(afterAnswer == nil)
        answered.noteSending(of: delivery)
        answered.reset(delivery.container)
        let afterReset = halted(&answered, from: 6)
        #expect(afterReset == nil)
    }

    // MARK: Made-up tokens

    private static let invented = 60

    /// Registers devices with tokens that twenty users made up, and returns deliveries to them.
    private func inventedDeliveries(in store: RelayStore) async throws -> [OwedDelivery] {
        var deliveries: [OwedDelivery] = []
        for number in 0..<Self.invented {
            let device = Fixtures.device(
                "d\(number)", of: "sybil\(number % 20)", token: 100 + number)
            let version = try await store.register(device, at: Fixtures.moment)
            var owed = Fixtures.delivery(at: UInt64(number + 1))
            owed.delivery.token = device.token
            owed.delivery.owner = device.owner
            owed.delivery.deviceID = device.id
            owed.deviceSerial = version.serial
            deliveries.append(owed)
        }
        return deliveries
    }

    private static func judged(_ request: PushRequest) -> PushOutcome {
        guard request.token != Fixtures.token(1) else { return .accepted }
        return .refused(
            GatewayRefusal(
                status: 400, reason: "BadDeviceToken",
                reaction: .forgetDeviceToken(.unknownToGateway)))
    }

    @Test func `a topic without accepted pushes is tried with tokens of other users`()
        async throws
    {
        let bench = try await WorkerBench(window: 256) { request, _ in Self.judged(request) }
        let deliveries = try await inventedDeliveries(in: bench.store)
        try await bench.run {
            try await bench.accept(deliveries)
            let isHalted = await Turns.yield { bench.worker.halts.count == 1 }
            #expect(isHalted)
            try await bench.accept(61...64)
            let isPassed = await bench.passed(64)
            #expect(isPassed)
            #expect(bench.worker.halts.map(\.reason) == ["BadDeviceToken"])
            #expect(bench.gateway.requests.count == Self.invented)
            // The first trial goes to the oldest device, whose user has had no unknown token.
            let isTried = await bench.advance(by: .seconds(5)) {
                bench.gateway.requests.count > Self.invented
            }
            #expect(isTried)
            let trial = bench.gateway.requests.dropFirst(Self.invented).first
            #expect(trial?.token == Fixtures.token(1))
            let isRest = try await bench.advance(by: .seconds(5)) {
                try await bench.retries.isEmpty
            }
            #expect(isRest)
        }
        let sent = bench.gateway.requests.count { $0.token == Fixtures.token(1) }
        #expect(sent == 4)
        let letters = try await bench.deadLetters.count
        #expect(letters == Self.invented)
        #expect(bench.worker.halts.isEmpty)
    }
}
