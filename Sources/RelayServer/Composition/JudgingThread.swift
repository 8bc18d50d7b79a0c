import Fanout
import Storage
import Synchronization

/// A thread that judges changes with expensive conditions one after the other, at a lower priority
/// than all other work of the process.
///
/// One condition may take a tenth of a second.
///
/// Concurrency: a lock around values.
final class JudgingThread: SideJudge {
    private let thread = LongWorkThread(name: "belfry.judging")
    private let judged = Mutex<[JudgingJob]>([])
    private let hasJudged = WakeSignal()

    func judge(_ job: JudgingJob) {
        Task(executorPreference: thread) {
            guard job.run(again: { [weak self] in self?.judge(job) }) else { return }
            self.judged.withLock { $0.append(job) }
            self.hasJudged.raise()
        }
    }

    func takeJudged() -> [JudgingJob] {
        judged.withLock { judged in
            defer { judged.removeAll(keepingCapacity: true) }
            return judged
        }
    }

    func wait() async { await hasJudged.wait() }
}
