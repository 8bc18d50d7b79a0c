import RelayModel
import Storage

/// How much of the log's turn each container has had.
///
/// The log is worked in order, so that a container whose changes fire hundreds each would keep
/// the changes of the others behind it waiting for all of them. Beyond its allowance it leaves its
/// larger fan-outs to ranges, which are worked beside the log, container by container. With nobody
/// beside it, it keeps the log's turn, which is the quicker one. Others count as beside it while
/// their changes stand behind its own, and for a while after their last one: the next may come at
/// once. Time is that of the log: when the changes were appended.
struct LogTurns: Sendable {
    /// Subscriptions that a container may fire in the log's turn at once while there are others, or
    /// a quarter of the pushes that are owed by them, if that is more.
    static let allowance = 256
    /// How many of them come back in a second: enough for one such fan-out in four seconds, so that
    /// of a hundred changes of the others hardly one meets it.
    static let perSecond = 64
    /// A smaller fan-out never becomes ranges: their rows would cost more than the others gain.
    static let least = 64
    /// How long a container counts as beside the others after its last change.
    static let remembrance = Contention.remembrance

    private struct Turn: Sendable {
        /// When its last change was appended, of those that were looked at.
        var last: Timestamp
        /// Subscriptions that it may fire still, and as of when.
        var left = LogTurns.allowance
        var asOf: Timestamp
    }

    private var turns: [ContainerKey: Turn] = [:]

    /// Whether others are beside whoever has the turn.
    var isContended: Bool { turns.count > 1 }

    /// Looks ahead in entries that were read together, after those of the call before.
    mutating func look(ahead entries: [FollowedEntry]) {
        for entry in entries {
            guard case .change = entry.body else { continue }
            let moment = entry.appendedAt
            turns[entry.container, default: Turn(last: moment, asOf: moment)].last = moment
        }
        guard turns.count > 1, let now = entries.last?.appendedAt else { return }
        turns = turns.filter { _, turn in
            let since = now.duration(since: turn.last)
            // One of later than now is of a clock that was set back.
            return since <= Self.remembrance && Duration.zero - since <= Self.remembrance
        }
    }

    /// Takes the turn for a fan-out that counts as `count` subscriptions, of a change that was
    /// appended at `moment`; says whether to leave it to ranges instead.
    mutating func yields(
        _ count: Int, of container: ContainerKey, at moment: Timestamp
    ) -> Bool {
        guard count > Self.least, turns.count > 1, var turn = turns[container] else {
            return false
        }
        // Where the clock was set back, what is left comes back from now on, and not from when it
        // will be as late again.
        turn.asOf = min(turn.asOf, moment)
        let seconds = min(moment.duration(since: turn.asOf) / .seconds(1), 60)
        let back = Int(seconds * Double(Self.perSecond))
        if back > 0 {
            turn.left = min(Self.allowance, turn.left + back)
            turn.asOf = moment
        }
        let yields = count > turn.left
        if !yields { turn.left -= count }
        turns[container] = turn
        return yields
    }
}
