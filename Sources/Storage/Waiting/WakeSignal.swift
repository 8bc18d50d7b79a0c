import Synchronization

/// Wakes one waiting task.
///
/// A wake-up without a waiting task is kept for the next wait.
///
/// It uses a lock and is not an actor, because `raise()` must work without suspension from threads
/// outside of tasks. Only one task at a time may wait.
package final class WakeSignal: Sendable {
    private enum State {
        case idle
        case raised
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex<State>(.idle)

    /// Creates a signal that is not raised.
    package init() {}

    /// Wakes the waiting task, or the next one that waits.
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

    /// Waits until the signal is raised or the task is cancelled.
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
