import RelayModel
import Storage

/// The share of the log's turn that each container has used.
///
/// The log is worked in order. So a container whose changes fire hundreds of subscriptions each
/// would keep the changes of other containers behind them waiting. A container that has used up its
/// allowance leaves its larger fan-outs to ranges, which are worked beside the log, container by
/// container. A container that is alone keeps the log's turn, which is quicker.
///
/// Another container counts as present while its changes are read together with others, and for a
/// while after its last one, because the next may come at once. Time is that of the log: the
/// moments when the changes were appended.
struct LogTurns: Sendable {
    /// The number of subscriptions that a container may fire in the log's turn at once while others
    /// are present, or a quarter of the owed pushes, if that is more.
    static let allowance = 256
    /// The part of the allowance that comes back each second.
    ///
    /// It is enough for one full allowance in four seconds, so that hardly one in a hundred changes
    /// of other containers meets such a fan-out.
    static let perSecond = 64
    /// The size up to which a fan-out never becomes ranges: their rows would cost more than they
    /// save.
    static let least = 64
    /// How long a container counts as present after its last change.
    static let remembrance = Contention.remembrance

    private struct Turn: Sendable {
        /// The time when the last change seen was appended.
        var last: Timestamp
        /// The number of subscriptions that the container may still fire, as of `asOf`.
        var left = LogTurns.allowance
        var asOf: Timestamp
    }

    private var turns: [ContainerKey: Turn] = [:]

    /// Whether several containers are present.
    var isContended: Bool { turns.count > 1 }

    /// Notes the containers of entries that were read together.
    ///
    /// Call it with the entries in the order of the log.
    mutating func look(ahead entries: [FollowedEntry]) {
        for entry in entries {
            guard case .change = entry.body else { continue }
            let moment = entry.appendedAt
            turns[entry.container, default: Turn(last: moment, asOf: moment)].last = moment
        }
        guard turns.count > 1, let now = entries.last?.appendedAt else { return }
        turns = turns.filter { _, turn in
            let since = now.duration(since: turn.last)
            // A moment later than `now` comes from a clock that was set back since.
            return since <= Self.remembrance && Duration.zero - since <= Self.remembrance
        }
    }

    /// Takes the turn for a fan-out of size `count` of a change that was appended at `moment`.
    ///
    /// Returns whether it must be left to ranges instead.
    mutating func yields(
        _ count: Int, of container: ContainerKey, at moment: Timestamp
    ) -> Bool {
        guard count > Self.least, turns.count > 1, var turn = turns[container] else {
            return false
        }
        // If the clock was set back, the allowance comes back from now on, and not only once the
        // clock has reached the old time again.
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
