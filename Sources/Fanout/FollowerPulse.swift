package import RelayModel
import Synchronization

/// What the follower is at, since when, and what whose entries took: whoever looks can tell that it
/// stands still, and for whom it works.
///
/// One that waits at the head, or for room to hand deliveries over, is at rest.
/// Concurrency: a lock; the follower writes, the watch reads.
package final class FollowerPulse: Sendable {
    /// The follower has been at one entry for so long.
    package struct Stand: Sendable, Hashable {
        /// The entry.
        package let position: LogPosition
        /// How long it has been at it.
        package let duration: Duration
    }

    /// What the entries of one container took.
    package struct Work: Sendable, Hashable {
        /// How many there were.
        package var entries = 0
        /// How long the follower was at them.
        package var time = Duration.zero
        /// How many of them took too long for the log's turn, and were judged beside it.
        package var dear = 0

        /// Says what entries took.
        package init(entries: Int = 0, time: Duration = .zero, dear: Int = 0) {
            self.entries = entries
            self.time = time
            self.dear = dear
        }
    }

    /// An entry in hand.
    package struct Entry: Sendable {
        /// Its place.
        package let position: LogPosition
        /// Whose it is.
        package let container: ContainerKey

        package init(position: LogPosition, container: ContainerKey) {
            self.position = position
            self.container = container
        }
    }

    private struct State {
        var current: (entry: Entry, since: Duration)?
        /// What is judged beside the log, since when.
        var beside: [LogPosition: Duration] = [:]
        var work: [ContainerKey: Work] = [:]

        /// Notes what the entry in hand took until `now`, and lays it aside.
        mutating func rest(at now: Duration) -> Entry? {
            guard let (entry, since) = current else { return nil }
            current = nil
            work[entry.container, default: Work()].time += now - since
            return entry
        }
    }

    /// From then on a follower stands still: ordinary entries take a thousandth of a second.
    package static let patience: Duration = .seconds(8)

    private let state = Mutex(State())
    private let changes = Atomic<UInt64>(0)
    private let matches = Atomic<UInt64>(0)
    private let clock: @Sendable () -> Duration

    /// Creates a pulse at rest; `clock` is a clock that never goes back.
    package init(clock: @escaping @Sendable () -> Duration) {
        self.clock = clock
    }

    /// The follower begins with an entry, or goes on with it.
    package func work(on entry: Entry) {
        let now = clock()
        state.withLock { $0.current = (entry, now) }
    }

    /// The follower waits; returns the entry that it was at.
    @discardableResult
    package func rest() -> Entry? {
        let now = clock()
        return state.withLock { $0.rest(at: now) }
    }

    /// The follower is done with its entry.
    package func finish() {
        let now = clock()
        state.withLock { state in
            guard let entry = state.rest(at: now) else { return }
            state.work[entry.container]?.entries += 1
        }
    }

    /// The change in hand is judged beside the log from now on.
    func putOff(_ position: LogPosition) {
        let now = clock()
        state.withLock { state in
            _ = state.rest(at: now)
            state.beside[position] = now
        }
    }

    /// A change that was put off is judged: what that took counts as the follower's work.
    func makeUp(_ entry: Entry) {
        let now = clock()
        state.withLock { state in
            guard let since = state.beside.removeValue(forKey: entry.position) else { return }
            state.work[entry.container, default: Work()].entries += 1
            state.work[entry.container]?.time += now - since
            state.work[entry.container]?.dear += 1
        }
    }

    /// A change was judged, and fired so many subscriptions.
    func judged(matches count: Int) {
        changes.wrappingAdd(1, ordering: .relaxed)
        matches.wrappingAdd(UInt64(count), ordering: .relaxed)
    }

    /// The changes that were judged since the start, and the subscriptions that they fired.
    package var judged: (changes: UInt64, matches: UInt64) {
        (changes.load(ordering: .relaxed), matches.load(ordering: .relaxed))
    }

    /// What whose entries took since the last call, of those that are done.
    package func takeWork() -> [ContainerKey: Work] {
        state.withLock { state in
            let done = state.work.filter { $0.value.entries > 0 }
            for container in done.keys { state.work[container] = nil }
            return done
        }
    }

    /// Where the follower stands still; `nil` if it does not.
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
