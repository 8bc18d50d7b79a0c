import RelayModel
import Storage

/// How much of the log's turn each container has had, of the entries that were read together.
///
/// The log is worked in order, so that a container whose changes fire thousands each would keep
/// the changes of the others behind it waiting for all of them. Beyond a share it leaves its larger
/// fan-outs to ranges, which are worked beside the log, container by container. With nobody behind
/// it, it keeps the log's turn, which is the quicker one.
struct LogTurns: Sendable {
    /// Subscriptions that a container fires in the log's turn while others wait behind it: half of
    /// the deliveries that are in flight at the most, unless that is set otherwise.
    static let share = 2048
    /// A smaller fan-out never becomes ranges: their rows would cost more than the others gain.
    static let least = 256

    private var had: [ContainerKey: Int] = [:]
    private var last: (position: LogPosition, container: ContainerKey)?
    /// The last change of another container than that of the last change.
    private var lastOfOthers = LogPosition.start

    /// Looks ahead in entries that were read together.
    init(_ entries: [FollowedEntry] = []) {
        for entry in entries.reversed() {
            guard case .change = entry.body else { continue }
            guard let last else {
                last = (entry.position, entry.container)
                continue
            }
            if entry.container != last.container {
                lastOfOthers = entry.position
                return
            }
        }
    }

    /// Takes the turn for a fan-out of `count` subscriptions at `position`; says whether to leave
    /// it to ranges instead.
    mutating func yields(
        _ count: Int, at position: LogPosition, of container: ContainerKey
    ) -> Bool {
        let taken = had[container, default: 0]
        if count > Self.least, taken + count > Self.share, othersWait(behind: position, container) {
            return true
        }
        had[container] = taken + count
        return false
    }

    private func othersWait(behind position: LogPosition, _ container: ContainerKey) -> Bool {
        guard let last else { return false }
        return position < (last.container == container ? lastOfOthers : last.position)
    }
}
