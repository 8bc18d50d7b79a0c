import FoundationEssentials
import Platform
import PostgresLink
import Synchronization

/// Looks now and then whether another host was promoted, as long as a store is owned.
///
/// An owner with good connections makes none anew, and so would not hear of a promotion beside a
/// primary that goes on: whoever starts then finds the promoted one, and there would be two owners.
final class HostWatch: Sendable {
    private let session: PostgresSession
    private let wake: PostgresWake
    private let isEnding = Mutex(false)

    /// How often: both take what they are sent for so long.
    private static let pause = Duration.seconds(5)

    /// Returns `nil` if there is but one host, or the process has no descriptor left.
    init?(_ session: PostgresSession) {
        guard session.hasSeveralHosts, let wake = PostgresWake() else { return nil }
        self.session = session
        self.wake = wake
    }

    /// Starts the thread, which a host whose machine is gone keeps waiting.
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
