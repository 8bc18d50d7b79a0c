package import RelayModel
import Synchronization

/// Where those wait who read much, so that they never have all the readers.
///
/// Concurrency: a lock around the turns; nobody is resumed while it is held.
package final class ReaderLine: Sendable {
    private struct State {
        var turns: ReaderTurns
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastTicket: UInt64 = 0
    }

    private let state: Mutex<State>

    /// Creates a line in which so many have a turn at the same time.
    package init(turns: Int) {
        state = Mutex(State(turns: ReaderTurns(free: turns)))
    }

    /// Runs `body` when it is the container's turn.
    ///
    /// - Throws: `CancellationError` if the task was cancelled before; what `body` throws.
    package func turn<Value: Sendable>(
        of container: ContainerKey, _ body: () async throws -> Value
    ) async throws -> Value {
        try await wait(container)
        defer { finish() }
        return try await body()
    }

    private func wait(_ container: ContainerKey) async throws {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enter(ticket, of: container, continuation)
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.turns.withdraw(ticket, of: container)
                    ? state.waiters.removeValue(forKey: ticket) : nil
            }
            waiter?.resume(throwing: CancellationError())
        }
    }

    private func enter(
        _ ticket: UInt64, of container: ContainerKey,
        _ continuation: CheckedContinuation<Void, any Error>
    ) {
        // Asked under the lock: who is cancelled later is found in the line.
        let answer = state.withLock { state -> Result<Void, any Error>? in
            if Task.isCancelled { return .failure(CancellationError()) }
            if state.turns.ask(ticket, of: container) { return .success(()) }
            state.waiters[ticket] = continuation
            return nil
        }
        if let answer { continuation.resume(with: answer) }
    }

    private func finish() {
        let waiter = state.withLock { state in
            state.turns.finish().flatMap { state.waiters.removeValue(forKey: $0) }
        }
        waiter?.resume()
    }
}
