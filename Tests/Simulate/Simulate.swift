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

    @Flag(help: "On a PostgreSQL server, where other relays take the store; one life at a time.")
    var server = false

    func validate() throws {
        guard jobs > 0, seeds > 0, from <= .max - seeds else {
            throw ValidationError("--seeds and --jobs are at least 1.")
        }
        guard !server || !clients else {
            throw ValidationError("--server and --clients exclude each other.")
        }
    }

    func run() async throws {
        let clock = ContinuousClock()
        let began = clock.now
        let (tally, broken) = try await live { tally in
            guard tally.lives.isMultiple(of: 1000) else { return }
            print("\(tally.lives) seeds in \(clock.now - began)")
            // Flushes, so that output to a file is there at once even if the run is stopped later.
            fflush(nil)
        }
        print(
            """
            \(tally.lives) seeds from \(from) kept the promises in \(clock.now - began): \
            \(tally.steps) steps, \(tally.crashes) crashes, \(tally.takeovers) takeovers, \
            \(tally.owed) deliveries owed, \(tally.sent) pushes
            """)
        for promise in broken {
            let place = server ? " --server" : ""
            print("\(promise)\n  again: simulate\(place) --from \(promise.seed) --seeds 1")
        }
        if !broken.isEmpty { throw ExitCode.failure }
    }

    private func live(
        hear: (LifeTally) -> Void
    ) async throws -> (tally: LifeTally, broken: [BrokenPromise]) {
        let lives = from..<from + seeds
        if server { return try await Lives.liveOnServer(lives) }
        return try await Lives.live(lives, atOnce: jobs, withClients: clients, hear: hear)
    }
}
