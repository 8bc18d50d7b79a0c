package import Delivery
package import Fanout
package import RelayModel
import Storage
import Synchronization

/// Delays the requests of a container that appends faster than the log is followed while others
/// write too: the shell around ``IntakeShares``.
///
/// It is a lock, not an actor, because every decision is short; no waiter is resumed while it is
/// held.
package final class IntakeTurns: Sendable {
    struct State {
        var shares: IntakeShares
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        /// The numbers of requests that were admitted before they had begun to wait.
        var early: Set<UInt64> = []
        /// The numbers of requests whose time ran out before they had begun to wait.
        var lapsed: Set<UInt64> = []
    }

    private let state: Mutex<State>
    private let elapsed: @Sendable () -> Duration
    private let clock: any Clock<Duration>
    private let patience: Duration
    private let hasNeighbors: @Sendable () -> Bool
    private let refused: @Sendable () -> Void

    /// Creates turns without any requests.
    ///
    /// - Parameters:
    ///   - clock: Measures how long changes are unfollowed, and how long a request waits.
    ///   - patience: How long a request waits before it is refused.
    ///   - window: The maximum number of deliveries in flight, of all containers.
    ///   - hasNeighbors: Returns whether there are several containers, whether they write or not.
    ///   - refused: Called for each request that is refused.
    package convenience init(
        clock: any Clock<Duration>, patience: Duration = .seconds(2), window: Int = 4096,
        hasNeighbors: @escaping @Sendable () -> Bool = { false },
        refused: @escaping @Sendable () -> Void = {}
    ) {
        var settings = IntakeShares.Settings()
        settings.pushes = max(1, window / 4)
        self.init(
            settings, clock: clock, patience: patience, hasNeighbors: hasNeighbors,
            refused: refused)
    }

    init(
        _ settings: IntakeShares.Settings, clock: any Clock<Duration>, patience: Duration,
        hasNeighbors: @escaping @Sendable () -> Bool = { false },
        refused: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(shares: IntakeShares(settings)))
        elapsed = clock.measureStart().elapsed
        self.clock = clock
        self.patience = patience
        self.hasNeighbors = hasNeighbors
        self.refused = refused
    }

    /// Runs `body`, which appends `changes` changes, when it is the container's turn.
    ///
    /// `besides` returns how many more changes `body` appended (negative for fewer), if this is
    /// known only afterwards.
    ///
    /// - Returns: The value that `body` returns beside the position of the last change that it
    ///   appended.
    /// - Throws: ``Storage/StorageError/bounded(_:reason:)`` if the turn does not come in time,
    ///   and what `body` throws.
    package func run<Value: Sendable>(
        _ container: ContainerKey, changes: Int, besides: (Value) -> Int = { _ in 0 },
        _ body: () async throws -> (value: Value, last: LogPosition?)
    ) async throws -> Value {
        try await enter(container, changes)
        do {
            let (value, last) = try await body()
            appended(container, changes, besides: besides(value), upTo: last)
            return value
        } catch {
            appended(container, changes, upTo: nil)
            throw error
        }
    }

    /// Returns how many changes of a divisible request may be appended at a time.
    func portion(of container: ContainerKey) -> Int {
        let now = elapsed()
        return state.withLock { $0.shares.portion(of: container, at: now) }
    }

    /// Records that the log is followed up to `position`, if it is given, and the time that the
    /// entries of each container took.
    ///
    /// For the containers in `behind`, it is followed only to before the given position.
    package func followed(
        upTo position: LogPosition?, behind: [ContainerKey: LogPosition] = [:],
        work: [ContainerKey: FollowerPulse.Work] = [:]
    ) {
        let now = elapsed()
        let waiters = state.withLock { state in
            state.take(
                state.shares.followed(upTo: position, behind: behind, work: work, at: now))
        }
        for waiter in waiters { waiter.resume(returning: true) }
    }

    /// The flow through which the delivery worker reports its pushes.
    package var flow: PushFlow {
        PushFlow { [self] container, count in
            state.withLock { $0.shares.began(container, pushes: count) }
        } ended: { [self] ends in
            guard !ends.isEmpty else { return }
            let waiters = state.withLock { state in state.take(state.shares.ended(ends)) }
            for waiter in waiters { waiter.resume(returning: true) }
        }
    }

    private func appended(
        _ container: ContainerKey, _ changes: Int, besides: Int = 0, upTo position: LogPosition?
    ) {
        let waiters = state.withLock { state in
            state.take(
                state.shares.appended(
                    container, changes: changes, besides: besides, upTo: position))
        }
        for waiter in waiters { waiter.resume(returning: true) }
    }

    private func enter(_ container: ContainerKey, _ changes: Int) async throws {
        let now = elapsed()
        let hasNeighbors = hasNeighbors()
        let answer = state.withLock { state in
            state.shares.hasNeighbors = hasNeighbors
            return state.shares.ask(container, changes: changes, at: now)
        }
        switch answer {
        case .enters: return
        case .waits(let number):
            if await turnCame(number, of: container) { return }
            try Task.checkCancellation()
        case .refused: break
        }
        throw refusal()
    }

    /// Counts a refused request, or a refused rest of one, and returns the error.
    func refusal() -> StorageError {
        refused()
        return StorageError.bounded(
            .share,
            reason:
                "the container's changes arrive faster than the relay can process them, and those "
                + "of other containers would wait")
    }

    /// The current time by the clock that measures waits.
    var moment: Duration { elapsed() }

    /// Waits until the request is admitted; returns `false` if its time ran out or its task was
    /// cancelled.
    private func turnCame(_ number: UInt64, of container: ContainerKey) async -> Bool {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [clock, patience] in
                try? await clock.sleep(for: patience)
                self.giveUp(number, of: container)
            }
            let came = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    self.enlist(continuation, number)
                }
            } onCancel: {
                self.giveUp(number, of: container)
            }
            group.cancelAll()
            return came
        }
    }

    private func enlist(_ continuation: CheckedContinuation<Bool, Never>, _ number: UInt64) {
        let answer = state.withLock { state -> Bool? in
            if state.early.remove(number) != nil { return true }
            if state.lapsed.remove(number) != nil { return false }
            state.waiters[number] = continuation
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
    }

    private func giveUp(_ number: UInt64, of container: ContainerKey) {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            // The request was admitted meanwhile, or has ended.
            guard state.shares.leave(number, of: container) else { return nil }
            guard let waiter = state.waiters.removeValue(forKey: number) else {
                state.lapsed.insert(number)
                return nil
            }
            return waiter
        }
        waiter?.resume(returning: false)
    }
}

extension IntakeTurns.State {
    /// Returns the continuations of admitted requests.
    mutating func take(
        _ numbers: [UInt64]
    ) -> [CheckedContinuation<Bool, Never>] {
        numbers.compactMap { number in
            if let waiter = waiters.removeValue(forKey: number) { return waiter }
            early.insert(number)
            return nil
        }
    }
}
