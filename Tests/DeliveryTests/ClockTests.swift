import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQLite
import Synchronization
import Testing

@testable import Delivery

/// What waits, waits as long as was meant, wherever the clock is set.
@Suite struct ClockTests {
    private static func tooMany(_ seconds: Int64) -> PushOutcome {
        .refused(
            GatewayRefusal(
                status: 429, reason: "TooManyRequests",
                reaction: .retry(after: .seconds(seconds), scope: .device)))
    }

    @Test func `readings out of turn are no step, and steps are told with their size`() {
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
    func `a clock that is set back prolongs no retry, and no device's hold`(
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
            // Both are due when the device's half minute is over, spread by a tenth.
            let isRenewed = await Turns.yield {
                let longest = (try? await bench.retries.map(\.dueAt).max()) ?? nil
                return longest.map { $0 <= bench.clock.moment.advanced(by: .seconds(34)) } ?? false
            }
            #expect(isRenewed)
            let isDone = try await bench.clock.advance(by: .seconds(1)) {
                try await bench.retries.isEmpty
            }
            #expect(isDone)
        }
        #expect(bench.gateway.requests.count == 3)
    }

    @Test func `retries of a clock that was two days ahead wait no longer after a restart`()
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
            let isDone = try await bench.clock.advance(by: .seconds(5)) {
                try await bench.retries.isEmpty
            }
            #expect(isDone)
        }
        #expect(bench.gateway.requests.count == 5)
    }

    @Test func `a halt of a container ends when it was to end`() async throws {
        let bad = PushOutcome.refused(
            GatewayRefusal(
                status: 403, reason: "InvalidProviderToken", reaction: .pauseContainer))
        let bench = try await WorkerBench { _, attempt in attempt == 1 ? bad : .accepted }
        try await bench.run {
            try await bench.accept(1...1)
            #expect(await bench.passed(1))
            #expect(bench.worker.halts.count == 1)
            bench.clock.setBack(by: .seconds(3600))
            for _ in 0..<100 where bench.gateway.requests.count == 1 {
                await bench.clock.advance(by: .seconds(1), times: 1)
            }
            #expect(await Turns.yield { bench.gateway.requests.count == 2 })
            #expect(await Turns.yield { bench.worker.halts.isEmpty })
        }
    }
}
