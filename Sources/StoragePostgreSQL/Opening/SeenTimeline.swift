import PostgresLink
import Synchronization

/// The latest timeline that this process has seen among the servers of one place.
///
/// It is shared by the whole process: once any connection has found the promoted server, no other
/// connection may keep using the former one.
final class SeenTimeline: Sendable {
    private let latest = Mutex<ServerTimeline?>(nil)
    private let fork = Mutex(false)

    private static let all = Mutex<[PostgresTarget: SeenTimeline]>([:])

    /// Returns what was seen of the servers that `target` names.
    static func of(_ target: PostgresTarget) -> SeenTimeline {
        all.withLock { all in
            if let seen = all[target] { return seen }
            let seen = SeenTimeline()
            all[target] = seen
            return seen
        }
    }

    /// Whether two servers had diverged on the latest timeline when the hosts were last checked.
    var isForked: Bool { fork.withLock { $0 } }

    func note(isForked: Bool) { fork.withLock { $0 = isForked } }

    /// Returns whether a timeline is over, because a later one of the same cluster was seen.
    func isPast(_ found: ServerTimeline) -> Bool {
        latest.withLock { latest in
            latest.map { $0.cluster == found.cluster && found.number < $0.number } ?? false
        }
    }

    /// Returns whether a timeline is later than the one that was seen.
    func isNews(_ found: ServerTimeline) -> Bool {
        latest.withLock { latest in
            latest.map { $0.cluster == found.cluster && found.number > $0.number } ?? false
        }
    }

    /// Accepts a timeline unless it is over; returns whether it was accepted.
    ///
    /// Another cluster in the same place, as after an upgrade of the server, replaces the old one.
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

/// The hosts of a place, and the time of the last check of the other hosts.
final class HostLooks: Sendable {
    private let last = Mutex<Duration?>(nil)
    private let found = Mutex<[String: String]>([:])

    /// How long a check remains valid.
    ///
    /// Many connections are made at once, and each check takes some seconds if a host does not
    /// answer.
    private static let validity = Duration.seconds(10)

    /// The hosts of the last connection, under libpq's parameter names.
    var named: [String: String] { found.withLock { $0 } }

    func note(_ hosts: [String: String]) { found.withLock { $0 = hosts } }

    /// Returns whether a check is due at a moment; the caller must then run it.
    func isDue(at moment: Duration) -> Bool {
        last.withLock { last in
            if let noted = last, moment - noted < Self.validity { return false }
            last = moment
            return true
        }
    }
}
