import Delivery
import Gateway
import RelayModel
import RelayTestKit
import Storage
import Testing

/// Whole courses of deliveries: outages, credentials, breakers, and what is counted and logged.
@Suite struct CourseTests {
    private static let alarming = PushOutcome.refused(
        GatewayRefusal(
            status: 400, reason: "BadTopic", reaction: .deadLetter, urgency: .alarm,
            explanation: "the topic is not valid"))
    private static let unknownToken = PushOutcome.refused(
        GatewayRefusal(
            status: 400, reason: "BadDeviceToken",
            reaction: .forgetDeviceToken(.unknownToGateway)))

    // MARK: Outages

    @Test(arguments: [
        PushOutcome.notSent(cause: "no connection"), .unknown(cause: "the connection broke"),
    ])
    func `an outage that lasts longer than all attempts ends no delivery`(
        outcome: PushOutcome
    )
        async throws
    {
        let bench = try await WorkerBench(maximumAttempts: 3) { _, _ in outcome }
        try await bench.run {
            try await bench.accept(1...3)
            #expect(await bench.passed(3))
            let hasTried = await bench.advance(by: .seconds(120)) {
                bench.gateway.requests.count > 30
            }
            #expect(hasTried)
            #expect(try await bench.deadLetters == [])
            bench.gateway.follow { _, _ in .accepted }
            let done = try await bench.advance(by: .seconds(60)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(try await bench.deadLetters == [])
    }

    @Test func `a container without a credential waits, and goes on when it has one`() async throws
    {
        let missing = PushOutcome.refused(
            GatewayRefusal(
                status: 0, reason: GatewayRefusal.unusableCredential, reaction: .pauseContainer,
                urgency: .alarm))
        let bench = try await WorkerBench { _, _ in missing }
        try await bench.run {
            try await bench.accept(1...30)
            #expect(await bench.passed(30))
            await bench.advance(by: .seconds(10), times: 1)
            // The breaker takes no part, because no request reached the gateway.
            #expect(bench.worker.halts.map(\.scope) == [.container(.development)])
            #expect(try await bench.retries.allSatisfy { $0.attempts == 0 })
            bench.gateway.follow { _, _ in .accepted }
            bench.worker.resume(Fixtures.container)
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        #expect(try await bench.deadLetters == [])
        #expect(bench.metrics[#"belfry_gateway_answers_total{status="0"}"#] == 0)
    }

    // MARK: Environments

    @Test func `a wrong token for one environment does not halt the other`() async throws {
        let wrongKey = PushOutcome.refused(
            GatewayRefusal(
                status: 403, reason: "BadEnvironmentKeyIdInToken", reaction: .pauseContainer))
        let bench = try await WorkerBench { request, _ in
            request.environment == .development ? wrongKey : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            try await bench.accept(deliveries(2...20) { $0.gatewayEnvironment = .production })
            #expect(await bench.passed(20))
            #expect(bench.gateway.requests.count == 20)
            #expect(bench.worker.halts.map(\.scope) == [.container(.development)])
        }
    }

    @Test func `a halt reports what waits, why, since when and until when`() async throws {
        let bench = try await WorkerBench { _, _ in
            .refused(
                GatewayRefusal(
                    status: 400, reason: "TopicDisallowed", reaction: .pauseTopic))
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            let since = bench.clock.moment
            bench.clock.advance(by: .seconds(60))
            #expect(await Turns.yield { bench.gateway.requests.count == 2 })
            let isRenewed = await Turns.yield { bench.gateway.answerCount == 2 }
            #expect(isRenewed)
            let halt = try #require(bench.worker.halts.first)
            #expect(halt.container == Fixtures.container)
            #expect(halt.scope == .topic("com.example.art", .development))
            #expect(halt.reason == "TopicDisallowed")
            #expect(halt.since == since)
            #expect(halt.until == since.advanced(by: .seconds(120)))
        }
        #expect(bench.metrics["belfry_halts"] == 1)
        bench.worker.resume(Fixtures.container)
        #expect(bench.metrics["belfry_halts"] == 0)
    }

    // MARK: The circuit breaker

    @Test(arguments: [
        GatewayRefusal(
            status: 500, reason: "InternalServerError",
            reaction: .retry(after: nil, scope: .delivery)),
        GatewayRefusal(status: 503, reason: "Shutdown", reaction: .retryOnFreshConnection),
    ])
    func `a gateway that answers with errors is halted`(
        refusal: GatewayRefusal
    )
        async throws
    {
        let bench = try await WorkerBench(window: 256) { _, _ in .refused(refusal) }
        try await bench.run {
            try await bench.accept(1...30)
            #expect(await bench.passed(30))
            let isHalted = await bench.advance(by: .milliseconds(500)) {
                bench.worker.halts.map(\.reason)
                    == ["the gateway cannot be used: \(refusal.reason)"]
            }
            #expect(isHalted)
            bench.gateway.follow { _, _ in .accepted }
            let done = try await bench.advance(by: .seconds(10)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
            #expect(bench.worker.halts.isEmpty)
        }
    }

    // MARK: Unknown tokens

    @Test func `an unknown token is forgotten even before any push was accepted`() async throws {
        let bench = try await WorkerBench { request, _ in
            request.token == Fixtures.token(2) ? Self.unknownToken : .accepted
        }
        try await bench.run {
            try await bench.accept(deliveries(1...1) { $0.token = Fixtures.token(2) })
            #expect(await bench.passed(1))
            try await bench.accept(deliveries(2...2) { $0.token = Fixtures.token(2) })
            #expect(await bench.passed(2))
        }
        #expect(bench.gateway.requests.count == 1)
        let outcomes = try await bench.receipts.sorted { $0.ordinal < $1.ordinal }.map(\.outcome)
        #expect(outcomes == [.unregistered, .dead])
        #expect(try await bench.deadLetters.count == 2)
    }

    // MARK: Pacing

    @Test func `a background push that is sent again takes no second place in the hour`()
        async throws
    {
        let bench = try await WorkerBench(silentPerHour: 2) { _, attempt in
            attempt < 4 ? .notSent(cause: "no connection") : .accepted
        }
        try await bench.run {
            try await bench.accept(
                deliveries(1...2) {
                    $0.notification.pushType = .background
                    $0.notification.priority = 5
                })
            let done = try await bench.advance(by: .seconds(1)) {
                try await bench.retries.isEmpty && bench.gateway.requests.count == 8
            }
            #expect(done)
        }
        #expect(bench.clock.moment < Fixtures.moment.advanced(by: .seconds(1800)))
    }

    @Test func `a halted push takes no place among a device's background pushes`() async throws {
        let bench = try await WorkerBench(silentPerHour: 1) { _, attempt in
            attempt == 1
                ? .refused(
                    GatewayRefusal(
                        status: 400, reason: "TopicDisallowed", reaction: .pauseTopic))
                : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            bench.gateway.follow { _, _ in .accepted }
            try await bench.accept(
                deliveries(2...2) {
                    $0.notification.pushType = .background
                    $0.notification.priority = 5
                })
            #expect(await bench.passed(2))
            bench.worker.resume(Fixtures.container)
            #expect(try await Turns.yield { try await bench.retries.isEmpty })
        }
        #expect(bench.gateway.requests.count == 3)
    }

    // MARK: Ranges

    @Test func `a newer change in a range supersedes a waiting delivery`() async throws {
        let bench = try await WorkerBench { _, _ in .unavailable }
        let collapsing: (inout Delivery) -> Void = {
            $0.notification.collapseID = "art"
            $0.collapsingRecord = RecordID(recordName: Fixtures.identifier("a1"))
        }
        try await bench.run {
            try await bench.accept(deliveries(1...1, collapsing))
            #expect(await bench.passed(1))
            // The newer one gets no answer, because its outcome does not matter here.
            bench.gateway.follow { request, _ in
                request.deliveryID.uuid.high == 2 ? nil : .accepted
            }
            try await bench.worker.accept(
                RangeBatch(
                    id: 1, offset: 0, deliveries: deliveries(2...2, collapsing), isLast: false))
            let done = try await bench.advance(by: .seconds(1)) {
                try await bench.retries.isEmpty
            }
            #expect(done)
        }
        #expect(
            try await bench.deadLetters.map(\.reason)
                == ["superseded by a newer change of the record"])
    }

    // MARK: What is counted and told

    @Test func `every settled delivery is counted by its outcome`() async throws {
        let bench = try await WorkerBench { request, _ in
            switch request.deliveryID.uuid.high {
            case 1: .accepted
            case 2: Self.alarming
            case 3: .notSent(cause: "no connection")
            case 4: .unknown(cause: "the connection broke")
            default: .accepted
            }
        }
        bench.clock.advance(by: .seconds(10))
        try await bench.run {
            try await bench.accept(1...4)
            #expect(await bench.passed(4))
            try await bench.accept(5...5, expiration: bench.clock.moment)
            #expect(await bench.passed(5))
        }
        for end in ["accepted", "refused", "unknown", "notSent"] {
            #expect(bench.metrics["belfry_attempts_total{outcome=\"\(end)\"}"] == 1, "\(end)")
        }
        for (ending, count) in [("accepted", 1), ("refused", 1), ("expired", 1), ("retried", 2)] {
            let series = "belfry_deliveries_settled_total{outcome=\"\(ending)\"}"
            #expect(bench.metrics[series] == Double(count), "\(ending)")
        }
        #expect(
            bench.metrics[#"belfry_gateway_answers_total{status="200",reason=""}"#] == 1)
        #expect(
            bench.metrics[#"belfry_gateway_answers_total{status="400",reason="BadTopic"}"#] == 1)
        #expect(try await bench.deadLetters.count == 2)
    }

    @Test func `an alarm is logged once a minute, with a count and without tokens`()
        async throws
    {
        let token = Fixtures.token(1)
        let page = PushOutcome.refused(
            GatewayRefusal(
                status: 404, reason: "no /3/device/\(token.rawValue) here",
                reaction: .deadLetter, urgency: .alarm, explanation: "not in the table"))
        let bench = try await WorkerBench { request, _ in
            request.deliveryID.uuid.high == 9 ? page : Self.alarming
        }
        try await bench.run {
            try await bench.accept(1...5)
            #expect(await bench.passed(5))
            bench.clock.advance(by: .seconds(61))
            try await bench.accept(6...9)
            #expect(await bench.passed(9))
        }
        let told = bench.log.lines.filter { $0.hasPrefix("warning: the gateway refused pushes") }
        #expect(told.count { $0.contains("reason=BadTopic") } == 2)
        #expect(told.contains { $0.contains("count=5") })
        #expect(told.count { $0.contains("reason=other") } == 1)
        #expect(!told.contains { $0.contains(token.rawValue) })
        #expect(bench.metrics[#"belfry_gateway_alarms_total{reason="BadTopic"}"#] == 8)
    }
}
