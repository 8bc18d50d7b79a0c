import Delivery
import RelayModel
import Storage
import StorageSQL

extension Relay {
    /// The path of the console with a code that signs in once with the configuration's token.
    ///
    /// It is `nil` if there is no such token, or if the console is off.
    package var consolePath: String? {
        guard console.settings.isEnabled, let token = configuration.adminToken else { return nil }
        let made = console.makeCode(for: Secrets.verifier(of: token), at: world.now())
        return ConsoleSessions.path(with: made.code)
    }

    /// Records a row of the last hour at each step.
    func sampleSeries() async throws {
        try await series.sample(by: world.clock, now: world.now) { try await seriesReading() }
    }

    private func seriesReading() async throws -> SeriesReading {
        var reading = SeriesReading()
        (reading.changes, reading.matches) = walk.judged
        reading.totals = walk.worker.totals
        let head = try await store.head().rawValue
        reading.behind = head - min(head, walk.settled.rawValue)
        reading.inFlight = walk.worker.inFlight
        reading.waiting = try await store.backlog().retries
        reading.halts = walk.worker.halts.count
        return reading
    }
}
