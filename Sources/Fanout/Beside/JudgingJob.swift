import Matching
import RelayModel
import Storage
import Synchronization

/// A change to be judged beside the log, with the state of its container, which nobody else has
/// meanwhile.
package final class JudgingJob: Sendable {
    /// What came of it.
    struct Outcome: Sendable {
        /// The state, as it was.
        var state: ShardState
        /// What the change fires, or why that is not known.
        let found: Result<FiredChange?, any Error>
    }

    private enum Stage: Sendable {
        case asked(ShardState, LoggedChange, isStale: Bool)
        case underWay
        case judged(Outcome)
    }

    /// The entry of the change.
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
    /// - Parameter again: Is called once it may be judged, if it may not now, because somebody
    ///   edits the index; it is to have this called anew.
    /// - Returns: Whether it was judged.
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
        // Nobody else has the state from then on: whoever edits it is not to make a copy of it.
        let outcome = Outcome(state: consume state, found: found)
        stage.withLock { $0 = .judged(outcome) }
    }

    /// What came of it, with the state; once.
    func takeOutcome() -> Outcome? {
        stage.withLock { stage in
            guard case .judged(let outcome) = stage else { return nil }
            stage = .underWay
            return outcome
        }
    }
}
