import RelayModel
import Storage

/// How much of the log's turn each container has had, of the entries that were read together.
///
/// The log is worked in order, so that a container whose changes fire thousands each would keep
/// the changes of the others behind it waiting for all of them. Beyond a share it leaves its larger
/// fan-outs to ranges, which are worked beside the log, container by container. With nobody beside
/// it, it keeps the log's turn, which is the quicker one. Others count as beside it while their
/// changes stand behind its own, and for a while after their last one: the next may come at once.
struct LogTurns: Sendable {
    /// Subscriptions that a container fires in the log's turn while there are others.
    ///
    /// It is what is expanded in about 5 ms.
    static let share = 512
    /// A smaller fan-out never becomes ranges: their rows would cost more than the others gain.
    static let least = 256
    /// How long a container counts as beside the others after its last change.
    static let remembrance = Duration.seconds(60)

    private var had: [ContainerKey: Int] = [:]
    /// When the last change of each container was appended, of those that were looked at.
    private var lastChanges: [ContainerKey: Timestamp] = [:]

    /// Looks ahead in entries that were read together, after those of the call before.
    mutating func look(ahead entries: [FollowedEntry]) {
        had.removeAll(keepingCapacity: true)
        for entry in entries {
            guard case .change = entry.body else { continue }
            lastChanges[entry.container] = entry.appendedAt
        }
        guard lastChanges.count > 1, let now = entries.last?.appendedAt else { return }
        lastChanges = lastChanges.filter { now.duration(since: $0.value) <= Self.remembrance }
    }

    /// Takes the turn for a fan-out of `count` subscriptions; says whether to leave it to ranges
    /// instead.
    mutating func yields(_ count: Int, of container: ContainerKey) -> Bool {
        let taken = had[container, default: 0]
        if count > Self.least, taken + count > Self.share,
            lastChanges.keys.contains(where: { $0 != container })
        {
            return true
        }
        had[container] = taken + count
        return false
    }
}
