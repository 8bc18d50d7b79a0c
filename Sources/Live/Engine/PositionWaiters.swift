import RelayModel

/// Those who wait until the log has been followed to a position.
///
/// A value of the engine's; each is resumed once.
struct PositionWaiters {
    private struct Waiter {
        let number: UInt64
        let position: LogPosition
        let continuation: CheckedContinuation<Void, any Error>
    }

    private var waiters: [Waiter] = []
    private var last: UInt64 = 0
    /// Whether nobody is to wait any more.
    private(set) var isOver = false

    /// The number of one who is about to wait.
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

    /// All up to `position` has been worked.
    mutating func resume(upTo position: LogPosition) {
        guard !waiters.isEmpty else { return }
        let ready = waiters.filter { $0.position <= position }
        guard !ready.isEmpty else { return }
        waiters.removeAll { $0.position <= position }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// One waits no more, if it did still.
    mutating func cancel(_ number: UInt64) {
        guard let index = waiters.firstIndex(where: { $0.number == number }) else { return }
        waiters.remove(at: index).continuation.resume(throwing: CancellationError())
    }

    /// Nobody waits any more.
    mutating func end() {
        isOver = true
        for waiter in waiters { waiter.continuation.resume(throwing: APIError.nobodyWaits) }
        waiters = []
    }
}

extension APIError {
    /// The relay ends, and nothing is waited for.
    static var nobodyWaits: APIError {
        APIError(.tryAgainLater, "the relay is shutting down", retryAfter: 1)
    }
}
