/// Waits while the store is temporarily unusable because the disk is full, another process holds
/// the file, or the database is unreachable.
///
/// The work that is owed must neither be lost nor end because of such a failure.
package struct StorePatience: Sendable {
    /// The longest pause between two attempts.
    private static let longestPause = Duration.seconds(5)

    private let clock: any Clock<Duration>
    private let onWait: @Sendable (StorageError) -> Void

    /// Creates a patience that pauses by `clock` and reports every failed attempt to `onWait`.
    package init(
        clock: any Clock<Duration>, onWait: @escaping @Sendable (StorageError) -> Void
    ) {
        self.clock = clock
        self.onWait = onWait
    }

    /// Repeats `body` until it succeeds, fails permanently, or the pauses add up to `bound`.
    ///
    /// Without a bound it repeats until it is cancelled.
    ///
    /// - Throws: The error of `body` if it does not pass (``StorageError/passes``) or the bound is
    ///   reached; `CancellationError`.
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
    /// Whether nothing was written and the same call may succeed later.
    package var passes: Bool {
        switch self {
        case .noRoom, .overloaded, .unavailable: true
        default: false
        }
    }
}
