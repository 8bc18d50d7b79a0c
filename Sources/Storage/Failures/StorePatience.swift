/// Waits while the store cannot be used only for now, because the disk is full, somebody else holds
/// the file, or the database is away: whoever works what is owed must neither lose it nor end.
package struct StorePatience: Sendable {
    /// The longest pause between two attempts.
    private static let longestPause = Duration.seconds(5)

    private let clock: any Clock<Duration>
    private let onWait: @Sendable (StorageError) -> Void

    /// Creates patience that pauses by `clock` and tells `onWait` of every failed attempt.
    package init(
        clock: any Clock<Duration>, onWait: @escaping @Sendable (StorageError) -> Void
    ) {
        self.clock = clock
        self.onWait = onWait
    }

    /// Attempts `body` until it succeeds, or fails for a reason that does not pass, or the pauses
    /// have taken `bound` altogether; without one until it is cancelled.
    ///
    /// - Throws: What `body` throws, except what ``StorageError/passes`` within the bound;
    ///   `CancellationError`.
    package func attempt<Value: Sendable>(
        within bound: Duration? = nil, _ body: () async throws -> Value
    ) async throws -> Value {
        var pause = Duration.milliseconds(100)
        var waited = Duration.zero
        while true {
            do {
                return try await body()
            } catch let error as StorageError where error.passes {
                if let bound, bound <= waited { throw error }
                onWait(error)
                try await clock.sleep(for: pause)
                waited += pause
                pause = min(pause * 2, Self.longestPause)
            }
        }
    }
}

extension StorageError {
    /// Whether nothing was written, and the same may succeed later.
    package var passes: Bool {
        switch self {
        case .noRoom, .overloaded, .unavailable: true
        default: false
        }
    }
}
