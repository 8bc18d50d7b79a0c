import FoundationEssentials
import Platform
import Synchronization

/// A thread of its own for calls of libpq, which block.
package final class PostgresThread: Sendable {
    private struct Job: Sendable {
        let body: @Sendable () -> Void
    }

    private struct Queue {
        var jobs: [Job] = []
        var hasEnded = false
    }

    private let queue = Mutex(Queue())
    private let wake: PostgresWake

    /// Creates a thread that is not started yet; `nil` if the process has no file descriptor left.
    package init?() {
        guard let wake = PostgresWake() else { return nil }
        self.wake = wake
    }

    /// Starts to run the jobs.
    package func start() {
        startThread(named: "belfry.postgres") { [self] in
            while let job = next() { job.body() }
        }
    }

    private func next() -> Job? {
        while true {
            let (job, hasEnded) = queue.withLock { queue -> (Job?, Bool) in
                (queue.jobs.isEmpty ? nil : queue.jobs.removeFirst(), queue.hasEnded)
            }
            if let job { return job }
            if hasEnded { return nil }
            wake.wait(for: .seconds(60))
        }
    }

    /// Runs `body` on the thread, after the earlier jobs.
    ///
    /// - Returns: Whether it will run; `false` if the thread was told to end.
    @discardableResult package func add(_ body: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = queue.withLock { queue in
            if !queue.hasEnded { queue.jobs.append(Job(body: body)) }
            return !queue.hasEnded
        }
        wake.signal()
        return isTaken
    }

    /// Runs `body` on the thread, after the earlier jobs, and returns its result.
    ///
    /// - Throws: What `body` throws, or `CancellationError` if the thread was told to end.
    package func run<Outcome: Sendable>(
        _ body: @escaping @Sendable () throws -> Outcome
    ) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = add { continuation.resume(with: Result { try body() }) }
            if !isTaken { continuation.resume(throwing: CancellationError()) }
        }
    }

    /// Ends the thread after the jobs that were added before.
    package func end() {
        queue.withLock { $0.hasEnded = true }
        wake.signal()
    }
}
