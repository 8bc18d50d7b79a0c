import Matching
import RelayModel
import Storage
import Synchronization

/// A change to be judged beside the log, together with the state of its container.
///
/// While the job runs, only the job holds that state.
package final class JudgingJob: Sendable {
    /// The result of the judgement.
    struct Outcome: Sendable {
        /// The state that was lent to the job, with the subscriptions whose conditions had errors.
        var state: ShardState
        /// The subscriptions that the change fires, or the error that judging it threw.
        let found: Result<FiredChange?, any Error>
    }

    private enum Stage: Sendable {
        case asked(ShardState, LoggedChange, isStale: Bool)
        case underWay
        case judged(Outcome)
    }

    /// The log entry of the change.
    let entry: FollowedEntry
    private let stage: Mutex<Stage>
    private let turns: JudgingTurns?

    init(
        _ change: LoggedChange, isStale: Bool, of entry: FollowedEntry,
        by state: ShardState, in turns: JudgingTurns?
    ) {
        self.entry = entry
        self.turns = turns
        stage = Mutex(.asked(state, change, isStale: isStale))
    }

    /// Judges the change, which may take some tenths of a second.
    ///
    /// - Parameter again: Called once the change may be judged, if an edit of the index prevents it
    ///   now. It must cause `run(again:)` to be called again.
    /// - Returns: Whether the change was judged.
    @discardableResult
    package func run(again: @escaping @Sendable () -> Void) -> Bool {
        if let turns, !turns.begin(entry.container, again: again) { return false }
        judge()
        turns?.end(entry.container)
        return true
    }

    /// Judges the change; a second call does nothing.
    private func judge() {
        let asked = stage.withLock { stage in
            let asked = stage
            stage = .underWay
            return asked
        }
        guard case .asked(var state, let change, let isStale) = consume asked else { return }
        let found = Result {
            try state.firedSerials(
                by: change, appendedAt: entry.appendedAt, isStale: isStale, in: entry.container)
        }
        // The outcome must hold the only reference to the state. Otherwise the next edit copies it.
        let outcome = Outcome(state: consume state, found: found)
        stage.withLock { $0 = .judged(outcome) }
    }

    /// Takes the outcome, with the state.
    ///
    /// Returns `nil` if there is none yet, or if it was taken before.
    func takeOutcome() -> Outcome? {
        stage.withLock { stage in
            guard case .judged(let outcome) = stage else { return nil }
            stage = .underWay
            return outcome
        }
    }
}
