import Synchronization

/// Wakes one waiting task; a wake-up that comes while nobody waits is kept for the next wait.
///
/// A lock, not an actor: waking must work from threads that are no task's, without suspension. It
/// may be waited for by one task at a time.
package final class WakeSignal: Sendable {
    private enum State {
        case idle
        case raised
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex<State>(.idle)

    /// Creates a signal that nobody has raised.
    package init() {}

    /// Wakes the waiting task, or the next to wait.
    package func raise() {
        let waiter: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard case .waiting(let continuation) = state else {
                state = .raised
                return nil
            }
            state = .idle
            return continuation
        }
        waiter?.resume()
    }

    /// Returns when the signal was raised, or the task is cancelled.
    package func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if case .raised = state {
                        state = .idle
                        return true
                    }
                    if Task.isCancelled { return true }
                    if case .waiting = state { preconditionFailure("two tasks wait") }
                    state = .waiting(continuation)
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            release()
        }
    }

    /// Ends a wait without leaving a wake-up behind.
    private func release() {
        let waiter: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard case .waiting(let continuation) = state else { return nil }
            state = .idle
            return continuation
        }
        waiter?.resume()
    }
}
