import Fanout
import RelayTestKit
import Synchronization

/// Judges changes beside the log when chance says so, in the same way each time for a seed.
final class SeededJudge: SideJudge {
    private struct State {
        var generator: SeededGenerator
        var open: [JudgingJob] = []
    }

    private let state: Mutex<State>

    init(seed: UInt64) {
        state = Mutex(State(generator: SeededGenerator(seed: seed)))
    }

    func judge(_ job: JudgingJob) {
        state.withLock { $0.open.append(job) }
    }

    func takeJudged() -> [JudgingJob] {
        state.withLock { state in
            var judged: [JudgingJob] = []
            var left: [JudgingJob] = []
            for job in state.open {
                if state.generator.chance(30) {
                    job.run(again: {})
                    judged.append(job)
                } else {
                    left.append(job)
                }
            }
            state.open = left
            return judged
        }
    }

    /// Returns at once; the caller asks again.
    func wait() async {}
}
