package import RelayModel
import Synchronization

/// A clock that stands still until a test moves it.
///
/// Sleepers wake in the order of their deadlines. The clock is a class with a lock, so that any
/// thread may read it.
package final class TestClock: Clock, Sendable {
    /// A moment on the clock.
    package struct Instant: InstantProtocol {
        /// The time since the clock was made.
        package let offset: Duration

        /// Returns the instant after `duration`.
        package func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// Returns the time to `other`.
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
        /// The sleepers by deadline, the earliest first; those with equal deadlines in order of
        /// arrival.
        var sleepers: [Sleeper] = []
    }

    private let state = Mutex(State())
    private let epoch: Timestamp

    /// Creates a clock at which the time of day is `epoch`.
    package init(epoch: Timestamp = Fixtures.moment) {
        self.epoch = epoch
    }

    /// The current instant.
    package var now: Instant { state.withLock { $0.now } }

    /// The smallest step.
    package var minimumResolution: Duration { .nanoseconds(1) }

    /// The time of day.
    package var moment: Timestamp {
        state.withLock { epoch.advanced(by: $0.now.offset - $0.setBack) }
    }

    /// Sets the time of day back, without an effect on waits.
    package func setBack(by step: Duration) {
        state.withLock { $0.setBack += step }
    }

    /// The number of tasks that sleep.
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

    /// Moves the clock, and wakes the sleepers whose deadline has come, the earliest first.
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
    /// - Returns: Whether the condition held before `Duration.patience` ended.
    package func advance(
        by step: Duration, until condition: () async throws -> Bool
    ) async rethrows -> Bool {
        try await Turns.yield(until: condition) { advance(by: step) }
    }

    /// Moves the clock `count` times, and lets the tasks that woke run after each step.
    package func advance(by step: Duration, times count: Int) async {
        for _ in 0..<count {
            advance(by: step)
            await Turns.pass(300)
        }
    }
}

/// Ways to let other tasks run without sleeping.
package enum Turns {
    /// Yields until `condition` holds, and calls `between` after each turn.
    ///
    /// - Returns: Whether the condition held before `Duration.patience` ended.
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

    /// Returns whether `condition` holds and keeps holding while others get many turns.
    ///
    /// Use it for what must not happen: there is no event to wait for.
    package static func keeps(_ condition: () -> Bool) async -> Bool {
        for _ in 0..<100 {
            guard condition() else { return false }
            await pass(20)
        }
        return condition()
    }

    /// Yields `count` times, for waits where nothing shows whether others have taken their turns.
    package static func pass(_ count: Int) async {
        for _ in 0..<count { await Task.yield() }
    }
}
