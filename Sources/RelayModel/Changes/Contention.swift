/// Detects whether several containers have been active recently, so that work for one delays
/// another.
///
/// A container that is active only now and then still counts between its visits, because its next
/// visit may come at any moment. The value has no clock: the caller passes moments as durations
/// since any fixed start, and they must not go back. Every operation is O(1), however many
/// containers there are.
package struct Contention: Sendable, Hashable {
    /// How long a container counts after its last visit.
    package static let remembrance = Duration.seconds(60)

    private struct Visit: Sendable, Hashable {
        let container: ContainerKey
        var moment: Duration
    }

    private var latest: Visit?
    /// The latest visit of a container other than the one in `latest`.
    private var other: Visit?

    /// Creates a value that has seen no container.
    package init() {}

    /// Records that `container` is active at `now`.
    package mutating func note(_ container: ContainerKey, at now: Duration) {
        if latest?.container == container {
            latest?.moment = now
        } else {
            other = latest
            latest = Visit(container: container, moment: now)
        }
    }

    /// Returns whether at least two containers have been active recently.
    package func isContended(at now: Duration) -> Bool {
        guard let other else { return false }
        return now - other.moment <= Self.remembrance
    }

    /// Returns whether a container other than `container` has been active recently.
    package func isContended(by container: ContainerKey, at now: Duration) -> Bool {
        let visit = latest?.container == container ? other : latest
        guard let visit else { return false }
        return now - visit.moment <= Self.remembrance
    }
}
