import NIOCore
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The record of everything that the gateway received, shared by its connections.
///
/// It uses a lock instead of an actor: every operation is short and synchronous, and connections on
/// event loops must not suspend. Nothing foreign is called while the lock is held, except the
/// waiters' conditions, which are pure.
final class GatewayLedger: Sendable {
    /// Decides from the totals whether a wait is over.
    typealias Condition = @Sendable (GatewayTotals) -> Bool

    private struct State {
        var totals = GatewayTotals()
        var pushes = CircularBuffer<ReceivedPush>()
        var tallies: [String: PushTally] = [:]
        var lastNumber: [String: Int] = [:]
        var violations = CircularBuffer<StreamLimitViolation>()
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0

        mutating func count(_ push: ReceivedPush) {
            var tally = tallies[push.apnsID] ?? PushTally()
            tally.received += 1
            if push.isAccepted {
                totals.accepted += 1
                tally.accepted += 1
                if tally.accepted > 1 { totals.duplicates += 1 }
            }
            if case .refuse(let refusal) = push.answer {
                totals.refusals[refusal.reason, default: 0] += 1
            }
            tallies[push.apnsID] = tally
            lastNumber[push.apnsID] = push.number
        }

        mutating func update(_ number: Int, _ body: (inout ReceivedPush) -> Void) {
            guard let oldest = pushes.first?.number, number >= oldest else { return }
            let index = pushes.index(pushes.startIndex, offsetBy: number - oldest)
            body(&pushes[index])
        }

        /// Drops the oldest push, and its tally if no later push has the same `apns-id`.
        mutating func forgetOldest() {
            let push = pushes.removeFirst()
            guard lastNumber[push.apnsID] == push.number else { return }
            lastNumber[push.apnsID] = nil
            tallies[push.apnsID] = nil
        }
    }

    private struct Waiter {
        var condition: Condition
        var continuation: CheckedContinuation<GatewayTotals, any Error>
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// Creates an empty ledger that keeps the last `capacity` pushes.
    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    /// The counters.
    var totals: GatewayTotals { state.withLock { $0.totals } }

    /// The kept pushes, in order.
    var pushes: [ReceivedPush] { state.withLock { Array($0.pushes) } }

    /// The kept violations, in order.
    var violations: [StreamLimitViolation] { state.withLock { Array($0.violations) } }

    /// Returns the counts of `apnsID`, as far as its pushes are kept.
    func tally(of apnsID: String) -> PushTally {
        state.withLock { $0.tallies[apnsID] ?? PushTally() }
    }

    /// Records a push and returns it with its number.
    func record(_ push: ReceivedPush) -> ReceivedPush {
        change { state in
            var push = push
            state.totals.received += 1
            push.number = state.totals.received
            state.count(push)
            state.pushes.append(push)
            if state.pushes.count > capacity { state.forgetOldest() }
            return push
        }
    }

    /// Records that the answer to `push` was written.
    func recordAnswer(to push: ReceivedPush) {
        change { state in
            state.totals.answered += 1
            state.tallies[push.apnsID]?.answered += 1
            state.update(push.number) { $0.isAnswered = true }
        }
    }

    /// Reverses the acceptance of `push`: the gateway has declared that it did not process it.
    func withdraw(_ push: ReceivedPush) {
        guard push.isAccepted else { return }
        change { state in
            state.totals.accepted -= 1
            if state.tallies[push.apnsID]?.duplicates ?? 0 > 0 { state.totals.duplicates -= 1 }
            state.tallies[push.apnsID]?.accepted -= 1
            state.update(push.number) { $0.isAccepted = false }
        }
    }

    /// Records a stream that was opened beyond the limit.
    func record(_ violation: StreamLimitViolation) {
        change { state in
            state.totals.streamLimitViolations += 1
            if !violation.isAcknowledged { state.totals.violationsBeforeAcknowledgement += 1 }
            state.violations.append(violation)
            if state.violations.count > capacity { state.violations.removeFirst() }
        }
    }

    /// Changes the counters and returns the result of `body`.
    @discardableResult
    func count<Result: Sendable>(_ body: (inout GatewayTotals) -> sending Result) -> Result {
        change { body(&$0.totals) }
    }

    /// Waits until `condition` holds, and returns the totals for which it did.
    ///
    /// - Throws: ``GatewayWaitTimeout`` after `limit`, or `CancellationError` if the task is
    ///   cancelled.
    func wait(
        within limit: Duration, until condition: @escaping Condition
    ) async throws
        -> GatewayTotals
    {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return try await withThrowingTaskGroup(of: GatewayTotals?.self) { group in
            group.addTask { try await self.enqueue(waiter, condition) }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            guard let totals = try await group.next() ?? nil else {
                throw GatewayWaitTimeout(totals: self.totals)
            }
            return totals
        }
    }
}

extension GatewayLedger {
    private func enqueue(
        _ waiter: Int, _ condition: @escaping Condition
    ) async throws
        -> GatewayTotals
    {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let totals: GatewayTotals? = state.withLock { state in
                    if condition(state.totals) { return state.totals }
                    state.waiters[waiter] = Waiter(
                        condition: condition, continuation: continuation)
                    return nil
                }
                if let totals { continuation.resume(returning: totals) }
                if Task.isCancelled { cancel(waiter) }
            }
        } onCancel: {
            cancel(waiter)
        }
    }

    private func cancel(_ number: Int) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
        waiter?.continuation.resume(throwing: CancellationError())
    }

    /// Changes the state, then resumes the waiters whose condition now holds.
    private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, woken, totals) = state.withLock { state in
            let result = body(&state)
            guard !state.waiters.isEmpty else { return (result, [Waiter](), GatewayTotals()) }
            let totals = state.totals
            let due = state.waiters.filter { $0.value.condition(totals) }
            for key in due.keys { state.waiters.removeValue(forKey: key) }
            return (result, Array(due.values), totals)
        }
        for waiter in woken { waiter.continuation.resume(returning: totals) }
        return result
    }
}
