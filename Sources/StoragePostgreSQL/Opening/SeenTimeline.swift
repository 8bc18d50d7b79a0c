import PostgresLink
import Synchronization

/// The latest history that this process has seen of the servers of one place.
///
/// It is the process's, and not a session's: whichever connection finds the promoted server first,
/// no other one may go on with the server before it.
final class SeenTimeline: Sendable {
    private let latest = Mutex<ServerTimeline?>(nil)
    private let fork = Mutex(false)

    private static let all = Mutex<[PostgresTarget: SeenTimeline]>([:])

    /// What was seen of the servers that `target` names.
    static func of(_ target: PostgresTarget) -> SeenTimeline {
        all.withLock { all in
            if let seen = all[target] { return seen }
            let seen = SeenTimeline()
            all[target] = seen
            return seen
        }
    }

    /// Whether two servers wrote the latest history, each for itself, when hosts were looked at.
    var isForked: Bool { fork.withLock { $0 } }

    func note(isForked: Bool) { fork.withLock { $0 = isForked } }

    /// Whether a history has ended, because a later one was seen.
    func isPast(_ found: ServerTimeline) -> Bool {
        latest.withLock { latest in
            latest.map { $0.cluster == found.cluster && found.number < $0.number } ?? false
        }
    }

    /// Whether a history is later than one that was seen.
    func isNews(_ found: ServerTimeline) -> Bool {
        latest.withLock { latest in
            latest.map { $0.cluster == found.cluster && found.number > $0.number } ?? false
        }
    }

    /// Goes on with a history, unless it has ended; says whether it does.
    ///
    /// Another cluster in the place, as after an upgrade of the server, begins anew.
    func goOn(with found: ServerTimeline) -> Bool {
        latest.withLock { latest in
            if let latest, latest.cluster == found.cluster, found.number < latest.number {
                return false
            }
            latest = found
            return true
        }
    }
}

/// Which hosts a place has, and when the others were looked at last.
final class HostLooks: Sendable {
    private let last = Mutex<Duration?>(nil)
    private let found = Mutex<[String: String]>([:])

    /// How long a look holds: many connections are made at once, and a host whose machine is gone
    /// costs each look some seconds.
    private static let validity = Duration.seconds(10)

    /// The hosts among which the last connection could choose, by libpq's names for what says so.
    var named: [String: String] { found.withLock { $0 } }

    func note(_ hosts: [String: String]) { found.withLock { $0 = hosts } }

    /// Whether it is time to look, at a moment; who is told so looks.
    func isDue(at moment: Duration) -> Bool {
        last.withLock { last in
            if let noted = last, moment - noted < Self.validity { return false }
            last = moment
            return true
        }
    }
}
