import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

/// The promises under seeded schedules of edits, changes, answers and crashes.
///
/// `BELFRY_SIMULATION_SEEDS` says how many seeds are tried (100 unless given), from
/// `BELFRY_SIMULATION_FROM` on. A failure names its seed and step.
@Suite struct SimulationTests {
    private static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["BELFRY_SIMULATION_FROM"].flatMap { UInt64($0) } ?? 1
        let count = environment["BELFRY_SIMULATION_SEEDS"].flatMap { UInt64($0) } ?? 100
        return first..<first + count
    }()

    @Test func `every seed keeps the promises`() async throws {
        var failures: [String] = []
        for seed in Self.seeds where failures.count < 5 {
            let home = try TemporaryStore(in: .memory)
            let store = try home.open()
            do {
                var simulation = try await Simulation(seed: seed, store: store)
                try await simulation.run(steps: 150)
            } catch let promise as BrokenPromise {
                failures.append(promise.description)
            }
            await store.close()
            try FileManager.default.removeItem(
                at: URL(filePath: home.path).deletingLastPathComponent())
        }
        #expect(failures == [])
    }
}
