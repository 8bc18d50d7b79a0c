package import RelayModel
import Synchronization

/// Tells which entry the follower works on, since when, and how much time the entries of each
/// container took.
///
/// It shows whether the follower stands still, and for which container it works.
///
/// A follower that waits at the head, or for room to hand deliveries over, is at rest. Concurrency:
/// a lock. The follower writes, its observers read.
package final class FollowerPulse: Sendable {
    /// The follower has been at one entry for longer than `patience`.
    package struct Stand: Sendable, Hashable {
        /// The position of the entry.
        package let position: LogPosition
        /// How long the follower has been at the entry.
        package let duration: Duration
    }

    /// The work on the entries of one container.
    package struct Work: Sendable, Hashable {
        /// The number of entries.
        package var entries = 0
        /// The time that the follower took for them.
        package var time = Duration.zero
        /// The number of entries that took too long for the log's turn, and were judged beside it.
        package var dear = 0

        /// Creates the work on the entries of a container.
        package init(entries: Int = 0, time: Duration = .zero, dear: Int = 0) {
            self.entries = entries
            self.time = time
            self.dear = dear
        }
    }

    /// An entry that the follower works on.
    package struct Entry: Sendable {
        /// The position of the entry.
        package let position: LogPosition
        /// The container of the entry.
        package let container: ContainerKey

        package init(position: LogPosition, container: ContainerKey) {
            self.position = position
            self.container = container
        }
    }

    private struct State {
        var current: (entry: Entry, since: Duration)?
        /// The positions of the changes that are judged beside the log, with the start of the
        /// judgement.
        var beside: [LogPosition: Duration] = [:]
        var work: [ContainerKey: Work] = [:]

        /// Adds the time since the current entry was begun, and sets it aside.
        ///
        /// Returns the entry.
        mutating func rest(at now: Duration) -> Entry? {
            guard let (entry, since) = current else { return nil }
            current = nil
            work[entry.container, default: Work()].time += now - since
            return entry
        }
    }

    /// The duration after which a follower stands still.
    ///
    /// Ordinary entries take about a millisecond.
    package static let patience: Duration = .seconds(8)

    private let state = Mutex(State())
    private let changes = Atomic<UInt64>(0)
    private let matches = Atomic<UInt64>(0)
    private let clock: @Sendable () -> Duration

    /// Creates a pulse at rest.
    ///
    /// `clock` must never go back.
    package init(clock: @escaping @Sendable () -> Duration) {
        self.clock = clock
    }

    /// Notes that the follower begins or resumes an entry.
    package func work(on entry: Entry) {
        let now = clock()
        state.withLock { $0.current = (entry, now) }
    }

    /// Notes that the follower waits.
    ///
    /// Returns the entry that it was at.
    @discardableResult
    package func rest() -> Entry? {
        let now = clock()
        return state.withLock { $0.rest(at: now) }
    }

    /// Notes that the follower has finished its entry.
    package func finish() {
        let now = clock()
        state.withLock { state in
            guard let entry = state.rest(at: now) else { return }
            state.work[entry.container]?.entries += 1
        }
    }

    /// Notes that the current change is judged beside the log from now on.
    func putOff(_ position: LogPosition) {
        let now = clock()
        state.withLock { state in
            _ = state.rest(at: now)
            state.beside[position] = now
        }
    }

    /// Notes that a put-off change was judged.
    ///
    /// The time that this took counts as the follower's work.
    func makeUp(_ entry: Entry) {
        let now = clock()
        state.withLock { state in
            guard let since = state.beside.removeValue(forKey: entry.position) else { return }
            state.work[entry.container, default: Work()].entries += 1
            state.work[entry.container]?.time += now - since
            state.work[entry.container]?.dear += 1
        }
    }

    /// Notes that a change was judged, and fired `count` subscriptions.
    func judged(matches count: Int) {
        changes.wrappingAdd(1, ordering: .relaxed)
        matches.wrappingAdd(UInt64(count), ordering: .relaxed)
    }

    /// The number of changes that were judged since the start, and of subscriptions that they
    /// fired.
    package var judged: (changes: UInt64, matches: UInt64) {
        (changes.load(ordering: .relaxed), matches.load(ordering: .relaxed))
    }

    /// Takes the work on each container's finished entries since the last call.
    package func takeWork() -> [ContainerKey: Work] {
        state.withLock { state in
            let done = state.work.filter { $0.value.entries > 0 }
            for container in done.keys { state.work[container] = nil }
            return done
        }
    }

    /// The entry at which the follower stands still, or `nil` if it does not.
    package var stand: Stand? {
        let now = clock()
        return state.withLock { state in
            var all = state.beside
            if let (entry, since) = state.current { all[entry.position] = since }
            guard let oldest = all.min(by: { $0.value < $1.value }),
                now - oldest.value >= Self.patience
            else { return nil }
            return Stand(position: oldest.key, duration: now - oldest.value)
        }
    }
}
