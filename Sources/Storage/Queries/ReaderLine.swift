package import RelayModel
import Synchronization

/// A function that begins a turn at reading and returns the test of whether it has taken long
/// enough.
///
/// It is called when the turn begins, which may be long after the request. Its result is called
/// after each row.
package typealias TurnStart = @Sendable () -> (@Sendable () -> Bool)

/// The queue in which long reads wait, so that they never take all the readers.
///
/// Concurrency: a lock protects the turns. No waiter is resumed while it is held.
package final class ReaderLine: Sendable {
    private struct State {
        var turns: ReaderTurns
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastTicket: UInt64 = 0
    }

    private let state: Mutex<State>

    /// Creates a queue with `turns` simultaneous turns, of which one container leaves `left` to
    /// others.
    package init(turns: Int, left: Int = 0) {
        state = Mutex(State(turns: ReaderTurns(free: turns, left: left)))
    }

    /// The number of waiters.
    var waiting: Int { state.withLock { $0.turns.waiting } }

    /// Runs `body` when the container, and `party` within it, has a turn.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before the turn; what `body` throws.
    package func turn<Value: Sendable>(
        of container: ContainerKey, by party: QueryParty = .server,
        _ body: () async throws -> Value
    ) async throws -> Value {
        try await wait(container, party)
        defer { finish(container, party) }
        return try await body()
    }

    private func wait(_ container: ContainerKey, _ party: QueryParty) async throws {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enter(ticket, of: container, by: party, continuation)
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.turns.withdraw(ticket, of: container, by: party)
                    ? state.waiters.removeValue(forKey: ticket) : nil
            }
            waiter?.resume(throwing: CancellationError())
        }
    }

    private func enter(
        _ ticket: UInt64, of container: ContainerKey, by party: QueryParty,
        _ continuation: CheckedContinuation<Void, any Error>
    ) {
        // Checked under the lock: a later cancellation finds the waiter in the queue.
        let answer = state.withLock { state -> Result<Void, any Error>? in
            if Task.isCancelled { return .failure(CancellationError()) }
            if state.turns.ask(ticket, of: container, by: party) { return .success(()) }
            state.waiters[ticket] = continuation
            return nil
        }
        if let answer { continuation.resume(with: answer) }
    }

    private func finish(_ container: ContainerKey, _ party: QueryParty) {
        let waiter = state.withLock { state in
            state.turns.finish(of: container, by: party)
                .flatMap { state.waiters.removeValue(forKey: $0) }
        }
        waiter?.resume()
    }
}
