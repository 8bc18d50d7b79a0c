package import RelayModel
import Synchronization

/// A clock that stands still until a test moves it.
///
/// Whoever sleeps on it wakes in the order of the deadlines. A lock, so that it may be read from
/// any thread.
package final class TestClock: Clock, Sendable {
    /// A moment on the clock.
    package struct Instant: InstantProtocol {
        /// The time since the clock was made.
        package let offset: Duration

        /// The instant after `duration`.
        package func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// The time to `other`.
        package func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Orders by time.
        package static func < (left: Instant, right: Instant) -> Bool {
            left.offset < right.offset
        }
    }

    private struct Sleeper {
        let id: UInt64
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var setBack = Duration.zero
        var nextID: UInt64 = 0
        /// By deadline, the earliest first; those with the same one as they came.
        var sleepers: [Sleeper] = []
    }

    private let state = Mutex(State())
    private let epoch: Timestamp

    /// Creates a clock at which the time of day is `epoch`.
    package init(epoch: Timestamp = Fixtures.moment) {
        self.epoch = epoch
    }

    /// Where the clock stands.
    package var now: Instant { state.withLock { $0.now } }

    /// The smallest step.
    package var minimumResolution: Duration { .nanoseconds(1) }

    /// The time of day.
    package var moment: Timestamp {
        state.withLock { epoch.advanced(by: $0.now.offset - $0.setBack) }
    }

    /// Sets the time of day back; waits go on as they were.
    package func setBack(by step: Duration) {
        state.withLock { $0.setBack += step }
    }

    /// How many sleep.
    package var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Sleeps until a test has moved the clock to `deadline`.
    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enlist(Sleeper(id: id, deadline: deadline, continuation: continuation))
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                state.sleepers.firstIndex { $0.id == id }.map { state.sleepers.remove(at: $0) }
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    private func enlist(_ sleeper: Sleeper) {
        let result: Result<Void, any Error>? = state.withLock { state in
            if Task.isCancelled { return .failure(CancellationError()) }
            if sleeper.deadline <= state.now { return .success(()) }
            let place = state.sleepers.firstIndex { sleeper.deadline < $0.deadline }
            state.sleepers.insert(sleeper, at: place ?? state.sleepers.endIndex)
            return nil
        }
        if let result { sleeper.continuation.resume(with: result) }
    }

    /// Moves the clock, and wakes whoever slept until then, the earliest first.
    package func advance(by duration: Duration) {
        let awake = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let now = state.now
            let count = state.sleepers.prefix { $0.deadline <= now }.count
            defer { state.sleepers.removeFirst(count) }
            return Array(state.sleepers.prefix(count))
        }
        for sleeper in awake { sleeper.continuation.resume() }
    }

    /// Moves the clock in steps until `condition` holds.
    ///
    /// - Returns: Whether it came to hold before patience ended.
    package func advance(
        by step: Duration, until condition: () async throws -> Bool
    ) async rethrows -> Bool {
        try await Turns.yield(until: condition) { advance(by: step) }
    }

    /// Moves the clock in so many steps, and lets whoever woke go on after each.
    package func advance(by step: Duration, times count: Int) async {
        for _ in 0..<count {
            advance(by: step)
            await Turns.pass(300)
        }
    }
}

/// Lets other tasks run, without ever sleeping.
package enum Turns {
    /// Yields until `condition` holds, and does `between` in each turn.
    ///
    /// - Returns: Whether it came to hold before patience ended.
    package static func yield(
        until condition: () async throws -> Bool, between: () -> Void = {}
    ) async rethrows -> Bool {
        let end = ContinuousClock.now.advanced(by: .patience)
        while try await !condition() {
            guard ContinuousClock.now < end else { return false }
            between()
            await pass(20)
        }
        return true
    }

    /// Whether `condition` holds, and goes on holding while others get many turns: what is not to
    /// happen has no moment to be waited for.
    package static func keeps(_ condition: () -> Bool) async -> Bool {
        for _ in 0..<100 {
            guard condition() else { return false }
            await pass(20)
        }
        return condition()
    }

    /// Gives others so many turns, where nothing can be seen by which to know that they took them.
    package static func pass(_ count: Int) async {
        for _ in 0..<count { await Task.yield() }
    }
}
