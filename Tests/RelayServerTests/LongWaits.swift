import Synchronization

/// A clock that is real except for waits of about one length, which end when the test says so.
final class LongWaits: Clock, Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var next: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var cancelled: Set<UInt64> = []
    }

    private let clock = ContinuousClock()
    private let length: Duration
    private let state = Mutex(State())

    /// Makes a clock that holds waits of `length`, and of up to a second less.
    init(of length: Duration) {
        self.length = length
    }

    var now: Instant { clock.now }
    var minimumResolution: Duration { clock.minimumResolution }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let left = clock.now.duration(to: deadline)
        guard left <= length, left > length - .seconds(1) else {
            return try await clock.sleep(until: deadline, tolerance: tolerance)
        }
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.cancelled.contains(number) { return true }
                    state.waiting[number] = continuation
                    return false
                }
                if isOver { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                state.cancelled.insert(number)
                return state.waiting.removeValue(forKey: number)
            }
            waiting?.resume(throwing: CancellationError())
        }
    }

    /// Ends all waits that are held.
    func pass() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }
}
