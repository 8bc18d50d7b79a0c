import Foundation
import Synchronization

/// A thread of its own for calls of libpq, which wait.
final class FollowThread: Sendable {
    private struct Job: Sendable {
        let body: @Sendable () -> Void
    }

    private struct Queue {
        var jobs: [Job] = []
        var hasEnded = false
    }

    private let queue = Mutex(Queue())
    private let wake: WakeSignal

    /// Returns `nil` if the process has no descriptor left.
    init?() {
        guard let wake = WakeSignal() else { return nil }
        self.wake = wake
    }

    func start() {
        let thread = Thread { [self] in
            while let job = next() { job.body() }
        }
        thread.name = "belfry.postgres"
        thread.start()
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

    /// Runs `body` on the thread, after what was asked for before.
    func run<Outcome: Sendable>(
        _ body: @escaping @Sendable () throws -> Outcome
    ) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job { continuation.resume(with: Result { try body() }) }
            let isLate = queue.withLock { queue in
                if !queue.hasEnded { queue.jobs.append(job) }
                return queue.hasEnded
            }
            if isLate { continuation.resume(throwing: CancellationError()) }
            wake.signal()
        }
    }

    /// Lets the thread end once it has done what was asked for.
    func end() {
        queue.withLock { $0.hasEnded = true }
        wake.signal()
    }
}
