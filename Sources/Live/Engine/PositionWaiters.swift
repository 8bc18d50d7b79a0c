import RelayModel

/// The callers that wait until the log has been followed to a position.
///
/// This is a value of the engine. Each caller is resumed once.
struct PositionWaiters {
    private struct Waiter {
        let number: UInt64
        let position: LogPosition
        let continuation: CheckedContinuation<Void, any Error>
    }

    private var waiters: [Waiter] = []
    private var last: UInt64 = 0
    /// Whether waiting has ended for good.
    private(set) var isOver = false

    /// Returns the number for a caller that is about to wait.
    mutating func number() -> UInt64 {
        last += 1
        return last
    }

    mutating func add(
        _ continuation: CheckedContinuation<Void, any Error>, _ number: UInt64,
        until position: LogPosition
    ) {
        waiters.append(Waiter(number: number, position: position, continuation: continuation))
    }

    /// Resumes the callers that wait for positions up to `position`.
    mutating func resume(upTo position: LogPosition) {
        guard !waiters.isEmpty else { return }
        let ready = waiters.filter { $0.position <= position }
        guard !ready.isEmpty else { return }
        waiters.removeAll { $0.position <= position }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Cancels one caller, if it still waits.
    mutating func cancel(_ number: UInt64) {
        guard let index = waiters.firstIndex(where: { $0.number == number }) else { return }
        waiters.remove(at: index).continuation.resume(throwing: CancellationError())
    }

    /// Ends all waiting, now and later.
    mutating func end() {
        isOver = true
        for waiter in waiters { waiter.continuation.resume(throwing: APIError.nobodyWaits) }
        waiters = []
    }
}

extension APIError {
    /// The error of waiting while the relay shuts down.
    static var nobodyWaits: APIError {
        APIError(.tryAgainLater, "the relay is shutting down", retryAfter: 1)
    }
}
