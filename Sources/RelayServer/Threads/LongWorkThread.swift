import FoundationEssentials
import Glibc
import Platform
import Storage
import Synchronization

/// A thread for what takes a processor for long, behind everything else that the process does.
///
/// The threads on which tasks run are as few as the processors, and all containers share them. What
/// takes one of them for tens of milliseconds is done here instead, one job after the other. Tasks
/// come here by `withTaskExecutorPreference`. Concurrency: a lock around values. The thread ends
/// with this object, once it has done what is there.
final class LongWorkThread: TaskExecutor {
    /// What the thread holds of this object, which may go before it.
    private final class Line: Sendable {
        private struct Jobs {
            var open: [UnownedJob] = []
            var isEnding = false
        }

        private let jobs = Mutex(Jobs())
        private let work = WakeUp()

        func add(_ job: UnownedJob) {
            jobs.withLock { $0.open.append(job) }
            work.signal()
        }

        func end() {
            jobs.withLock { $0.isEnding = true }
            work.signal()
        }

        func run(on executor: UnownedTaskExecutor) {
            while true {
                work.wait()
                let next = jobs.withLock { jobs in
                    jobs.open.isEmpty ? nil : jobs.open.removeFirst()
                }
                if let next {
                    unsafe next.runSynchronously(on: executor)
                } else if jobs.withLock({ $0.isEnding }) {
                    return
                }
            }
        }
    }

    /// How much the thread leaves to others: of a processor that one of them wants it has a
    /// tenth, so that what waits for it at the end waits some tenths of a second.
    private static let niceness: Int32 = 10

    private let line = Line()

    /// Starts the thread under a name for those who look at the process.
    init(name: String) {
        let executor = unsafe asUnownedTaskExecutor()
        startThread(named: name) { [line] in
            // Of the calling thread alone, on Linux.
            _ = nice(Self.niceness)
            unsafe line.run(on: executor)
        }
    }

    deinit { line.end() }

    func enqueue(_ job: consuming ExecutorJob) {
        line.add(UnownedJob(job))
    }
}
