package import RelayModel
import Synchronization

/// What the follower is at, and since when: whoever looks can tell that it stands still.
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

    /// From then on a follower stands still: ordinary entries take a thousandth of a second.
    package static let patience: Duration = .seconds(8)

    private let current = Mutex<(position: LogPosition, since: Duration)?>(nil)
    private let clock: @Sendable () -> Duration

    /// Creates a pulse at rest; `clock` is a clock that never goes back.
    package init(clock: @escaping @Sendable () -> Duration) {
        self.clock = clock
    }

    /// The follower begins with an entry.
    package func work(on position: LogPosition) {
        let now = clock()
        current.withLock { $0 = (position, now) }
    }

    /// The follower is done, or waits; returns the entry that it was at.
    @discardableResult
    package func rest() -> LogPosition? {
        current.withLock { current in
            defer { current = nil }
            return current?.position
        }
    }

    /// Where the follower stands still; `nil` if it does not.
    package var stand: Stand? {
        let now = clock()
        return current.withLock { current in
            guard let current, now - current.since >= Self.patience else { return nil }
            return Stand(position: current.position, duration: now - current.since)
        }
    }
}
