import CoreMetrics
import Gateway
import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import Delivery

/// Every wait lasts as long as intended, wherever the clock is set.
@Suite struct ClockTests {
    private static func tooMany(_ seconds: Int64) -> PushOutcome {
        .refused(
            GatewayRefusal(
                status: 429, reason: "TooManyRequests",
                reaction: .retry(after: .seconds(seconds), scope: .device)))
    }

    @Test func `small corrections are no clock step, and steps are reported with their size`() {
        var watch = ClockWatch()
        let noon = Fixtures.moment
        #expect(watch.note(noon) == nil)
        #expect(watch.note(noon.back(by: .milliseconds(100))) == nil)
        #expect(watch.note(noon.back(by: .milliseconds(60))) == nil)
        #expect(watch.note(noon.advanced(by: .seconds(2))) == nil)
        #expect(watch.note(noon.advanced(by: .seconds(-3598))) == .seconds(3600))
        #expect(watch.note(noon.advanced(by: .seconds(-3597))) == nil)
        #expect(watch.note(noon.advanced(by: .seconds(-3598))) == .seconds(1))
    }

    @Test(arguments: [Duration.seconds(1), .seconds(3600), .seconds(2 * 86_400)])
    func `setting the clock back prolongs no retry and no device hold`(
        step: Duration
    ) async throws {
        let bench = try await WorkerBench { request, attempt in
            request.recipient?.position == LogPosition(1) && attempt == 1
                ? Self.tooMany(30) : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            bench.clock.setBack(by: step)
            // A new push to the same device waits as long as the first one.
            try await bench.accept(2...2)
            #expect(await bench.passed(2))
            #expect(bench.gateway.requests.count == 1)
            // Both are due when the device's half minute is over, with a spread of a tenth.
            let isRenewed = await Turns.yield {
                let longest = (try? await bench.retries.map(\.dueAt).max()) ?? nil
                return longest.map { $0 <= bench.clock.moment.advanced(by: .seconds(34)) } ?? false
            }
            #expect(isRenewed)
            let isDone = try await bench.advance(by: .seconds(1)) {
                try await bench.retries.isEmpty
            }
            #expect(isDone)
        }
        #expect(bench.gateway.requests.count == 3)
    }

    /// The new time must not be visible before all waits are moved.
    ///
    /// Otherwise a delivery that is admitted in between is judged by the new time and the old
    /// holds, and once waited for two days.
    @Test func `once the clock is found set back, all waits have been moved`() throws {
        let clock = TestClock()
        let listener = WaitListener()
        let ledger = DeliveryLedger(
            at: .start, now: { clock.moment }, generator: SeededGenerator(seed: 1),
            logger: Logger(label: "test", factory: { _ in listener }), metrics: MetricsBook())
        listener.heard.withLock { $0.ledger = ledger }
        let admission = ledger.withStateNow {
            $0.admit(deliveries(1...1)[...], atMost: 1, withdrawn: [:], at: $1)
        }
        let request = try #require(admission.requests.first)
        ledger.take([PushCompletion(ticket: request.ticket, outcome: .badCredential)])
        let halted = try #require(ledger.halts.first)
        clock.setBack(by: .seconds(3600))
        _ = ledger.now()
        let seen = listener.heard.withLock { $0.waits.last }
        #expect(seen == halted.until.back(by: .seconds(3600)))
    }

    @Test func `retries from a clock that was ahead do not wait longer after a restart`()
        async throws
    {
        let home = try TemporaryStore()
        let ahead = try await WorkerBench(on: home) { _, _ in Self.tooMany(20) }
        try await ahead.run {
            try await ahead.accept(1...5)
            #expect(await ahead.passed(5))
        }
        await ahead.store.close()
        let bench = try await WorkerBench(
            at: ProgressMark(position: LogPosition(5), offset: 0), on: home)
        bench.clock.setBack(by: .seconds(2 * 86_400))
        try await bench.run {
            let renewed = await Turns.yield {
                let longest = (try? await bench.retries.map(\.dueAt).max()) ?? nil
                return longest.map { $0 <= bench.clock.moment.advanced(by: .seconds(22)) } ?? false
            }
            #expect(renewed)
            #expect(bench.gateway.requests.isEmpty, "the wait that the gateway wants is kept")
            let isDone = try await bench.advance(by: .seconds(5)) {
                try await bench.retries.isEmpty
            }
            #expect(isDone)
        }
        #expect(bench.gateway.requests.count == 5)
    }

    @Test func `setting the clock back prolongs no halt of a container`() async throws {
        let bench = try await WorkerBench { _, attempt in
            attempt == 1 ? .badCredential : .accepted
        }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            #expect(bench.worker.halts.count == 1)
            bench.clock.setBack(by: .seconds(3600))
            for _ in 0..<100 where bench.gateway.requests.count == 1 {
                await bench.advance(by: .seconds(1), times: 1)
            }
            #expect(await Turns.yield { bench.gateway.requests.count == 2 })
            #expect(await Turns.yield { bench.worker.halts.isEmpty })
        }
    }
}

/// A log handler that reads, at each line, until when deliveries are halted.
private struct WaitListener: LogHandler {
    struct State {
        var ledger: DeliveryLedger?
        var waits: [Timestamp] = []
    }

    /// The state that all copies of the handler share.
    final class Heard: Sendable {
        private let state = Mutex(State())

        func withLock<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
            state.withLock { body(&$0) }
        }
    }

    let heard = Heard()
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        guard let ledger = heard.withLock({ $0.ledger }) else { return }
        let waits = ledger.halts.map(\.until)
        heard.withLock { $0.waits += waits }
    }
}
