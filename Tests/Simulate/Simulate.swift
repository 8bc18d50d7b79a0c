import ArgumentParser
import Foundation
import SimulationKit

/// Runs many simulated lives of a relay, each from its own seed, and reports those that broke a
/// promise.
@main struct Simulate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "The promises under seeded schedules of edits, changes, answers and crashes.")

    @Option(help: "How many seeds.")
    var seeds: UInt64 = 10_000

    @Option(help: "The first seed.")
    var from: UInt64 = 1

    @Option(help: "How many lives at a time.")
    var jobs = 2

    @Flag(help: "Connected clients live along.")
    var clients = false

    func validate() throws {
        guard jobs > 0, seeds > 0, from <= .max - seeds else {
            throw ValidationError("--seeds and --jobs are at least 1.")
        }
    }

    func run() async throws {
        let clock = ContinuousClock()
        let began = clock.now
        let (tally, broken) = try await Lives.live(
            from..<from + seeds, atOnce: jobs, withClients: clients
        ) { tally in
            guard tally.lives.isMultiple(of: 1000) else { return }
            print("\(tally.lives) seeds in \(clock.now - began)")
            // Flushes, so that output to a file is there at once even if the run is stopped later.
            fflush(nil)
        }
        print(
            """
            \(tally.lives) seeds from \(from) kept the promises in \(clock.now - began): \
            \(tally.steps) steps, \(tally.crashes) crashes, \(tally.owed) deliveries owed, \
            \(tally.sent) pushes
            """)
        for promise in broken {
            print("\(promise)\n  again: simulate --from \(promise.seed) --seeds 1")
        }
        if !broken.isEmpty { throw ExitCode.failure }
    }
}
