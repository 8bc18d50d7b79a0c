import FoundationEssentials
import Glibc
import Platform
import Storage
import Synchronization

/// A thread for work that uses a processor for long, at a lower priority than everything else in
/// the process.
///
/// The threads on which tasks run are as few as the processors, and all containers share them. Work
/// that would occupy one of them for tens of milliseconds runs here instead, one job after the
/// other. Tasks run here by `withTaskExecutorPreference`.
///
/// Concurrency: a lock around values. The thread ends after this object is released and its jobs
/// are done.
final class LongWorkThread: TaskExecutor {
    /// The jobs of the thread, which the thread may hold longer than this object exists.
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

    /// The nice value of the thread.
    ///
    /// On a busy processor the thread still gets about a tenth of the time, so that a shutdown
    /// waits only some tenths of a second for its jobs.
    private static let niceness: Int32 = 10

    private let line = Line()

    /// Starts the thread; its name is visible in tools that list threads.
    init(name: String) {
        let executor = unsafe asUnownedTaskExecutor()
        startThread(named: name) { [line] in
            // On Linux, this changes only the calling thread.
            _ = nice(Self.niceness)
            unsafe line.run(on: executor)
        }
    }

    deinit { line.end() }

    func enqueue(_ job: consuming ExecutorJob) {
        line.add(UnownedJob(job))
    }
}
