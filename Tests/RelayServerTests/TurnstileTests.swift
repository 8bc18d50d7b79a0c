import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// The decisions about request rates and about memory for bodies.
@Suite struct TurnstileTests {
    private static let limit = RateLimit(perSecond: 10, burst: 20)

    @Test func `a bucket gives its content at once and then its rate`() {
        var table = RateTable<Int>(capacity: 10)
        for _ in 0..<20 { #expect(table.take(of: 1, Self.limit, at: .zero) == nil) }
        #expect(table.take(of: 1, Self.limit, at: .zero) == .milliseconds(100))
        #expect(table.take(of: 2, Self.limit, at: .zero) == nil)
        // A refused request takes no token.
        #expect(table.take(of: 1, Self.limit, at: .milliseconds(100)) == nil)
        #expect(table.take(of: 1, Self.limit, at: .milliseconds(100)) != nil)
        var taken = 0
        for tenth in 0..<1000
        where
            table.take(of: 1, Self.limit, at: .seconds(1) + .milliseconds(tenth * 10)) == nil
        {
            taken += 1
        }
        #expect((100...110).contains(taken))
    }

    @Test func `a clock that steps back gives nothing`() {
        var table = RateTable<Int>(capacity: 10)
        for _ in 0..<20 { _ = table.take(of: 1, Self.limit, at: .seconds(100)) }
        #expect(table.take(of: 1, Self.limit, at: .seconds(50)) != nil)
    }

    @Test func `a million names are bounded, and none gets its tokens back`() {
        var table = RateTable<Int>(capacity: 1000)
        for _ in 0..<20 { _ = table.take(of: -1, Self.limit, at: .zero) }
        for name in 0..<1_000_000 {
            #expect(table.take(of: name, Self.limit, at: .zero) == nil)
        }
        #expect(table.count <= 1000)
        // Names that came once are nearer to full than the one that came twenty times. They are
        // evicted first, because each eviction chooses among eight.
        #expect(table.take(of: -1, Self.limit, at: .zero) != nil)
    }

    @Test func `a charge is never more than a bucket holds`() {
        var table = RateTable<Int>(capacity: 10)
        for _ in 0..<1000 { table.charge(20, to: 1, Self.limit, at: .zero) }
        #expect(table.take(of: 1, Self.limit, at: .zero) == .milliseconds(100))
        #expect(table.take(of: 1, Self.limit, at: .seconds(2)) == nil)
    }

    // MARK: The administrative token

    private static func address(_ number: Int) throws -> ClientAddress {
        try #require(ClientAddress(text: "10.0.\(number / 256).\(number % 256)"))
    }

    @Test func `a debt is paid before anything is given again`() {
        var table = RateTable<Int>(capacity: 10)
        table.charge(1000, to: 1, Self.limit, owed: 30, at: .zero)
        #expect(table.take(of: 1, Self.limit, at: .seconds(3)) == .milliseconds(100))
        #expect(table.take(of: 1, Self.limit, at: .seconds(3) + .milliseconds(100)) == nil)
    }

    @Test func `changes of a schema are counted by what changes and what is read`() throws {
        let clock = TestClock()
        let turnstile = Turnstile(clock: clock, metrics: PrometheusMetrics())
        func schema(_ types: Int, _ type: SchemaFieldType) -> ContainerSchema {
            ContainerSchema(
                (0..<types).map { number in
                    RecordTypeDefinition(
                        known("T\(number)"),
                        fields: Dictionary(
                            uniqueKeysWithValues: (0..<999).map {
                                ("f\($0)", FieldDefinition(type))
                            }))
                })
        }
        let (texts, numbers) = (schema(20, .init(.string)), schema(20, .init(.int64)))
        #expect(texts.differences(from: numbers) == 20_000)
        #expect(texts.differences(from: schema(19, .init(.string))) == 1000)
        #expect(schema(19, .init(.string)).differences(from: texts) == 1000)
        let container = Sample.container
        // Nothing changes, however often that is asked for.
        for _ in 0..<1000 { try turnstile.change(texts, to: texts, of: container) }
        try turnstile.change(ContainerSchema(), to: texts, of: container)
        #expect(throws: APIError.self) { try turnstile.change(texts, to: numbers, of: container) }
        clock.advance(by: .seconds(2))
        try turnstile.change(texts, to: numbers, of: container)
        let refusal = #expect(throws: APIError.self) {
            try turnstile.change(numbers, to: texts, of: container)
        }
        #expect(refusal?.code == .throttled)
    }

    @Test func `after ten wrong guesses an address gets four comparisons a second`() throws {
        var guesses = AdminGuesses()
        let attacker = try Self.address(1)
        for _ in 0..<10 {
            #expect(guesses.judge(attacker, at: .zero) == .now)
            guesses.wrong(attacker, at: .zero)
        }
        #expect(guesses.judge(attacker, at: .zero) == .later(.zero))
        #expect(guesses.judge(attacker, at: .zero) == .later(.milliseconds(250)))
        var line = 0
        while case .later = guesses.judge(attacker, at: .zero) { line += 1 }
        #expect((60...64).contains(line))
        // Another address does not wait in the line.
        #expect(guesses.judge(try Self.address(2), at: .zero) == .now)
    }

    @Test func `an attacker with many addresses is slowed, and the operator is not`() throws {
        var guesses = AdminGuesses()
        let operators = try Self.address(0)
        guesses.right(operators, at: .zero)
        var atOnce = 0
        for number in 1...2000 {
            let address = try Self.address(number)
            guard guesses.judge(address, at: .seconds(1)) == .now else { continue }
            atOnce += 1
            guesses.wrong(address, at: .seconds(1))
        }
        #expect((95...105).contains(atOnce))
        #expect(guesses.judge(operators, at: .seconds(1)) == .now)
        #expect(guesses.judge(operators, at: .seconds(90_000)) == .now)
    }

    @Test func `an operator who shares the attacker's address waits for seconds`() throws {
        var guesses = AdminGuesses()
        let shared = try Self.address(1)
        for _ in 0..<10 { guesses.wrong(shared, at: .zero) }
        for _ in 0..<8 { _ = guesses.judge(shared, at: .zero) }
        #expect(guesses.judge(shared, at: .zero) == .later(.seconds(2)))
        guesses.right(shared, at: .seconds(2))
        #expect(guesses.judge(shared, at: .seconds(2)) == .now)
    }

    // MARK: Memory

    @Test func `bodies share a bound, and one container gets half`() {
        let art = TestRelay.container
        let other = ContainerKey(
            container: known("iCloud.com.example.Other"), environment: .development)
        var bodies = BodyBudget(room: 800)
        #expect(bodies.take(400, for: art, isBeginning: true) == true)
        #expect(bodies.take(1, for: art, isBeginning: true) == false)
        #expect(bodies.take(300, for: other, isBeginning: false) == true)
        // The last eighth is reserved for the beginnings of bodies.
        #expect(bodies.take(1, for: other, isBeginning: false) == false)
        #expect(bodies.take(100, for: other, isBeginning: true) == true)
        #expect(bodies.take(1, for: nil, isBeginning: true) == false)
        bodies.give(400, of: art)
        bodies.give(400, of: other)
        #expect(bodies.used == 0)
        #expect(bodies.take(400, for: art, isBeginning: true) == true)
    }

    @Test func `long bodies of one container leave room for its short ones`() {
        let art = TestRelay.container
        var budget = BodyBudget(room: 800)
        #expect(budget.take(350, for: art, isBeginning: false) == true)
        #expect(budget.take(1, for: art, isBeginning: false) == false)
        #expect(budget.take(50, for: art, isBeginning: true) == true)
        #expect(budget.take(1, for: art, isBeginning: true) == false)
        budget.give(400, of: art)
        #expect(budget.take(350, for: art, isBeginning: false) == true)
    }

    @Test(arguments: [800, 8_388_608, 10_485_761])
    func `the longest body that fits is accepted alone, and no longer one:`(room: Int) {
        let longest = BodyBudget.longestBody(within: room)
        var budget = BodyBudget(room: room)
        #expect(budget.take(longest + 1, for: TestRelay.container, isBeginning: false) == false)
        #expect(budget.take(longest, for: TestRelay.container, isBeginning: false) == true)
    }

    @Test func `a body without memory is refused after a while`() async throws {
        var settings = RateSettings()
        settings.bodyBytes = 1000
        let turnstile = Turnstile(
            settings, clock: ImpatientClock(), metrics: PrometheusMetrics())
        try await turnstile.takeMemory(500, for: TestRelay.container, isBeginning: true)
        let error = await #expect(throws: APIError.self) {
            try await turnstile.takeMemory(1, for: TestRelay.container, isBeginning: true)
        }
        #expect(error?.httpStatus == 503)
        #expect(error?.retryAfter == 2)
        turnstile.giveMemory(500, of: TestRelay.container)
        #expect(turnstile.memory == 0)
        try await turnstile.takeMemory(1, for: TestRelay.container, isBeginning: true)
    }

    @Test func `the rate of one container's administrators does not affect others`() throws {
        let clock = TestClock()
        let turnstile = Turnstile(RateSettings(), clock: clock, metrics: PrometheusMetrics())
        for _ in 0..<1000 { try turnstile.use(administering: TestRelay.container) }
        let error = #expect(throws: APIError.self) {
            try turnstile.use(administering: TestRelay.container)
        }
        #expect(error?.httpStatus == 429)
        let other = ContainerKey(
            container: TestRelay.container.container, environment: .production)
        try turnstile.use(administering: other)
        clock.advance(by: .seconds(1))
        for _ in 0..<100 { try turnstile.use(administering: TestRelay.container) }
    }

    // MARK: Before the body

    @Test func `every call that reads a body knows its caller first`() async throws {
        try await TestRelay.with { relay in
            // A call that reads a body must not be an open route, because these have no caller.
            let open = RelayRouter.routes(relay.dependencies).filter {
                if case .open = $0.entrance { true } else { false }
            }
            #expect(
                Set(open.map(\.path)) == [
                    "/courier/1/{secret}", "/sign-in/1/{container}/{environment}", "/", "/healthz",
                    "/console", "/console/{page}", "/console/{page}/{place}",
                    "/changes/1/{container}/{environment}/{source}", "/readyz", "/metrics",
                    "/openapi.json", "/live", "/live/client.js",
                    "/live/1/{container}/{environment}",
                    "/live/belfry-live.js", "/live/client.d.ts", "/live/live-page.js",
                ])
        }
    }
}

/// A clock whose waits end at once.
private final class ImpatientClock: Clock {
    private let moment = Mutex(TestClock().now)

    var now: TestClock.Instant { moment.withLock { $0 } }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: TestClock.Instant, tolerance: Duration?) async throws {
        moment.withLock { $0 = max($0, deadline) }
    }
}
