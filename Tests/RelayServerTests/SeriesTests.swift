import Delivery
import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// The series of the last hour.
@Suite(.timeLimit(.minutes(15))) struct SeriesTests {
    private static func reading(_ changes: UInt64, behind: UInt64 = 0) -> SeriesReading {
        var reading = SeriesReading()
        reading.changes = changes
        reading.matches = changes * 3
        reading.behind = behind
        return reading
    }

    @Test func `a row has the rates of its step`() throws {
        var ring = SeriesRing(most: 10)
        ring.take(Self.reading(100), at: Fixtures.moment, after: 0)
        #expect(ring.newest == 0)
        ring.take(Self.reading(150, behind: 7), at: Fixtures.moment, after: 5)
        let row = try #require(ring.rows(after: 0).first)
        #expect(row.values.count == SeriesRing.columns.count - 1)
        #expect(Array(row.values.prefix(2)) == [10, 30])
        #expect(row.values[6] == 7)
        // Nothing was sent, so there is no measurement.
        #expect(row.values.suffix(4) == [nil, nil, nil, nil])
    }

    @Test func `the oldest rows make room, and a reader continues after a row`() {
        var ring = SeriesRing(most: 4)
        for step in 0...6 {
            ring.take(Self.reading(UInt64(step)), at: Fixtures.moment, after: 1)
        }
        #expect(ring.newest == 6)
        #expect(ring.rows(after: 0).count == 4)
        #expect(ring.rows(after: 3).count == 3)
        #expect(ring.rows(after: 6).isEmpty)
        #expect(ring.rows(after: 99).isEmpty)
    }

    @Test func `a reader from before a restart is told and starts anew`() throws {
        let identifiers = RandomIdentifiers { Array(repeating: 7, count: $0) }
        let series = RecentSeries(identifiers: identifiers)
        series.take(Self.reading(0), at: Fixtures.moment, after: .zero)
        series.take(Self.reading(5), at: Fixtures.moment, after: .seconds(5))
        let first = try series.answer(after: nil)
        #expect(first.rows.count == 1 && !first.isRestarted)
        #expect(try series.answer(after: first.place).rows.isEmpty)
        let foreign = try series.answer(after: "0000000000000000.9")
        #expect(foreign.rows.count == 1 && foreign.isRestarted)
        #expect(throws: APIError.self) { try series.answer(after: "x") }
    }

    private struct Away: Error {}

    @Test func `an unavailable store ends nothing, and a longer step is one step`() async throws {
        let series = RecentSeries(
            identifiers: RandomIdentifiers { Array(repeating: 7, count: $0) })
        let clock = TestClock()
        let count = Mutex<UInt64>(0)
        let sampling = Task {
            try await series.sample(by: clock, now: { Fixtures.moment }) {
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                // It fails at the beginning, and once in between.
                guard number != 1, number != 3 else { throw Away() }
                return Self.reading(number * 50)
            }
        }
        for step in 1...4 {
            let sleeps = await Turns.yield {
                count.withLock { $0 } == UInt64(step) && clock.sleeperCount == 1
            }
            #expect(sleeps)
            if step < 4 { clock.advance(by: .seconds(5)) }
        }
        let rows = try series.answer(after: nil).rows
        #expect(rows.count == 1)
        let row = try #require(rows.first)
        #expect(Array(row.values.prefix(1)) == [10])
        sampling.cancel()
        await #expect(throws: CancellationError.self) { try await sampling.value }
    }

    @Test func `a running relay returns the requested series`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("new", "artist = \"a-1\""))
            try await relay.container.post(.change("create", "w1", ["artist": "a-1"]))
            _ = try await relay.arrivals()
            let answer = try await relay.client.administer("GET", "series")
            #expect(answer.status == 200, "\(answer.text)")
            #expect(answer["columns", "1"] == "changes")
            #expect(answer["stepSeconds"] == 5)
            // The values from which the rows are computed.
            let judged = relay.relay.walk.judged
            #expect(judged.changes == 1 && judged.matches == 1)
            let totals = relay.relay.walk.worker.totals
            #expect(totals.attempts == 2 && totals.accepted == 2 && totals.deadLetters == 0)
            #expect(totals.latencies.quantile(0.5) != nil && totals.delays.quantile(0.99) != nil)
            let shown = try await relay.client.administer("GET", "console")
            #expect(shown["series", "spanSeconds"] == 3600)
            #expect(shown["phones"] == false)
            let refused = try await relay.client.administer("GET", "series?after=x")
            #expect(refused.status == 400)
        }
    }
}
