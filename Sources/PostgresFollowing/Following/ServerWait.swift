import PostgresLink
import Synchronization

extension PostgresThread {
    /// Runs `body` on the thread, after the earlier jobs.
    ///
    /// A cancelled task does not wait any longer, and the result of `body` is dropped. This is for
    /// calls of libpq that cannot be stopped: it looks up names and connects, which may take as
    /// long as a server chooses not to answer.
    ///
    /// - Throws: What `body` throws, or `CancellationError`.
    func runUnlessCancelled<Outcome: Sendable>(
        _ body: @escaping @Sendable () throws -> Outcome
    ) async throws -> Outcome {
        let wait = ServerWait<Outcome>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard wait.begin(continuation) else { return }
                let isTaken = add { wait.end(with: Result { try body() }) }
                if !isTaken { wait.end(with: .failure(CancellationError())) }
            }
        } onCancel: {
            wait.end(with: .failure(CancellationError()))
        }
    }
}

/// A task's wait for a job of a thread, which ends with the job or with the task's cancellation.
private final class ServerWait<Outcome: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Outcome, any Error>)
        case over
    }

    private let state = Mutex(State.new)

    /// Begins to wait; returns `false` if the wait was cancelled before.
    func begin(_ continuation: CheckedContinuation<Outcome, any Error>) -> Bool {
        let begins = state.withLock { state in
            guard case .new = state else { return false }
            state = .waiting(continuation)
            return true
        }
        if !begins { continuation.resume(throwing: CancellationError()) }
        return begins
    }

    /// Ends the wait; later results are dropped.
    func end(with result: Result<Outcome, any Error>) {
        let former = state.withLock { state in
            defer { state = .over }
            return state
        }
        if case .waiting(let continuation) = former { continuation.resume(with: result) }
    }
}
