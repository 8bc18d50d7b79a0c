import Foundation
import SimulationKit
import Testing

/// The promises under seeded schedules of edits, changes, answers and crashes.
///
/// The environment variable `BELFRY_SIMULATION_SEEDS` sets the number of seeds (100 by default),
/// and `BELFRY_SIMULATION_FROM` sets the first one. A failure names its seed and step. For
/// thousands of seeds `swift run -c release simulate` is several times as fast.
@Suite struct SimulationTests {
    private static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["BELFRY_SIMULATION_FROM"].flatMap { UInt64($0) } ?? 1
        let count = environment["BELFRY_SIMULATION_SEEDS"].flatMap { UInt64($0) } ?? 100
        return first..<first + count
    }()

    @Test func `every seed keeps the promises`() async throws {
        let (tally, broken) = try await Lives.live(Self.seeds, atOnce: 2)
        #expect(broken.map(\.description) == [])
        #expect(tally.lives == Self.seeds.count)
        #expect(tally.setAside > 0)
    }

    /// A tenth of the seeds, because each statement goes to a server.
    @Test(.enabled(if: Lives.hasServer, "PostgreSQL is not installed; deploy/test does it"))
    func `seeds keep the promises on PostgreSQL, where other relays take the store`()
        async throws
    {
        let first = Self.seeds.lowerBound
        let count = max(1, UInt64(Self.seeds.count) / 10)
        let (tally, broken) = try await Lives.liveOnServer(first..<first + count)
        #expect(broken.map(\.description) == [])
        #expect(tally.lives == Int(count))
        if count >= 10 { #expect(tally.takeovers > 0) }
    }

    @Test func `a seed lives the same life again`() async throws {
        let first = try await Lives.live(seed: 4716)
        #expect(first.crashes > 0 && first.owed > 0)
        let second = try await Lives.live(seed: 4716)
        #expect(first == second)
    }
}
