import FoundationEssentials
import Platform
import PostgresLink
import Synchronization

/// Checks now and then whether another host was promoted, while a store is owned.
///
/// An owner with good connections makes no new ones, so it would not learn that another host was
/// promoted while its primary keeps running. A relay that starts then connects to the promoted
/// host, and there would be two owners.
final class HostWatch: Sendable {
    private let session: PostgresSession
    private let wake: PostgresWake
    private let isEnding = Mutex(false)

    /// The time between two checks: both hosts accept writes for that long.
    private static let pause = Duration.seconds(5)

    /// Creates the watch; `nil` if there is only one host, or the process has no file descriptor
    /// left.
    init?(_ session: PostgresSession) {
        guard session.hasSeveralHosts, let wake = PostgresWake() else { return nil }
        self.session = session
        self.wake = wake
    }

    /// Starts the thread, which may block on a host that does not answer.
    func start() {
        startThread(named: "belfry.hosts") { [self] in
            while true {
                wake.wait(for: Self.pause)
                if isEnding.withLock({ $0 }) { return }
                session.lookAtHosts()
            }
        }
    }

    /// Ends the thread.
    func end() {
        isEnding.withLock { $0 = true }
        wake.signal()
    }
}
