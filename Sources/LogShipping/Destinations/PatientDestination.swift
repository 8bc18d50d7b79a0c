import Synchronization

/// A destination that retries reads a few times while it is temporarily unavailable.
///
/// A restore reads thousands of objects one after the other, and would otherwise have to start
/// again.
package final class PatientDestination: BackupDestination {
    private let destination: any BackupDestination
    private let clock: any Clock<Duration>
    /// Whether the destination has ever answered.
    ///
    /// If it has not, the reason is probably permanent, and nothing is retried.
    private let hasAnswered = Mutex(false)

    /// The pauses before each retry.
    private static let pauses = [1, 2, 5, 10, 20].map { Duration.seconds($0) }

    package init(_ destination: any BackupDestination, clock: any Clock<Duration>) {
        self.destination = destination
        self.clock = clock
    }

    package var place: String { destination.place }

    package func put(_ name: String, _ bytes: [UInt8]) async throws(DestinationFailure) {
        try await destination.put(name, bytes)
    }

    package func get(
        _ name: String, atMost limit: Int
    ) async throws(DestinationFailure) -> [UInt8]? {
        try await patiently { () async throws(DestinationFailure) -> [UInt8]? in
            try await self.destination.get(name, atMost: limit)
        }
    }

    package func names(below prefix: String) async throws(DestinationFailure) -> [String] {
        try await patiently { () async throws(DestinationFailure) -> [String] in
            try await self.destination.names(below: prefix)
        }
    }

    package func remove(_ name: String) async throws(DestinationFailure) {
        try await destination.remove(name)
    }

    package func close() async { await destination.close() }

    private func patiently<Value>(
        _ body: () async throws(DestinationFailure) -> Value
    ) async throws(DestinationFailure) -> Value {
        for pause in Self.pauses {
            do throws(DestinationFailure) {
                let value = try await body()
                hasAnswered.withLock { $0 = true }
                return value
            } catch {
                guard error.kind == .away, hasAnswered.withLock({ $0 }) else { throw error }
                // If the task is cancelled during the pause, the caller gets the destination's
                // error.
                guard (try? await clock.sleep(for: pause)) != nil else { throw error }
            }
        }
        return try await body()
    }
}
