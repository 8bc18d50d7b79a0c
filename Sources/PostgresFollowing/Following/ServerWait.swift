import PostgresLink
import Synchronization

extension PostgresThread {
    /// Runs `body` on the thread, after what was asked for before; a task that is cancelled waits
    /// no longer, and what comes of `body` is dropped.
    ///
    /// It is for what libpq cannot be stopped in: it looks up names and connects, which may take
    /// as long as a server that does not answer likes.
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

/// A task that waits for what a thread does, until that has ended or the task is cancelled.
private final class ServerWait<Outcome: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Outcome, any Error>)
        case over
    }

    private let state = Mutex(State.new)

    /// Begins to wait; returns whether it has not ended already.
    func begin(_ continuation: CheckedContinuation<Outcome, any Error>) -> Bool {
        let begins = state.withLock { state in
            guard case .new = state else { return false }
            state = .waiting(continuation)
            return true
        }
        if !begins { continuation.resume(throwing: CancellationError()) }
        return begins
    }

    /// Ends the wait; what comes after its end is dropped.
    func end(with result: Result<Outcome, any Error>) {
        let former = state.withLock { state in
            defer { state = .over }
            return state
        }
        if case .waiting(let continuation) = former { continuation.resume(with: result) }
    }
}
