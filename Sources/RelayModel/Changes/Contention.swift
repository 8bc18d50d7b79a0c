/// Whether several containers were there lately, so that what one of them takes keeps another
/// waiting.
///
/// Whoever comes now and then counts as beside the others between its visits, because the next may
/// come at once. A value without a clock: moments come in, as durations since any beginning, and
/// never go back. Everything is O(1), however many containers there are.
package struct Contention: Sendable, Hashable {
    /// A container counts for so long after it was there.
    package static let remembrance = Duration.seconds(60)

    private struct Visit: Sendable, Hashable {
        let container: ContainerKey
        var moment: Duration
    }

    private var latest: Visit?
    /// The latest visit of another container than that.
    private var other: Visit?

    /// Nobody was there.
    package init() {}

    /// A container is there.
    package mutating func note(_ container: ContainerKey, at now: Duration) {
        if latest?.container == container {
            latest?.moment = now
        } else {
            other = latest
            latest = Visit(container: container, moment: now)
        }
    }

    /// Whether several were there.
    package func isContended(at now: Duration) -> Bool {
        guard let other else { return false }
        return now - other.moment <= Self.remembrance
    }

    /// Whether another one than `container` was there.
    package func isContended(by container: ContainerKey, at now: Duration) -> Bool {
        let visit = latest?.container == container ? other : latest
        guard let visit else { return false }
        return now - visit.moment <= Self.remembrance
    }
}
