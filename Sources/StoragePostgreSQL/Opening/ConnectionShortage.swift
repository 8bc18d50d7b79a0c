import PostgresLink
import Synchronization

/// Whether the server recently had no connection left for this process.
///
/// Only an attempt to connect can find out. The finding holds for some seconds, because otherwise a
/// relay that is not ready would get no requests, and never learn that there are connections again.
final class ConnectionShortage: Sendable {
    private let noted = Mutex<Duration?>(nil)

    /// How long a finding holds; code that runs once a second asks for a connection more often.
    private static let validity = Duration.seconds(5)
    /// The reason as it is reported, without details of the server.
    static let sentence =
        "the database has no connection left: raise max_connections, or end other connections"

    /// Returns the sentence if the shortage holds at a moment.
    func reason(at moment: Duration) -> String? {
        guard let noted = noted.withLock({ $0 }), moment - noted < Self.validity else { return nil }
        return Self.sentence
    }

    /// Records why a connection was not made.
    func note(_ error: PostgresError, at moment: Duration) {
        if error.isFull { noted.withLock { $0 = moment } }
    }

    /// Records that a connection was made.
    func end() { noted.withLock { $0 = nil } }
}

extension PostgresError {
    /// Whether the server, the database or the role had no connection left.
    var isFull: Bool { state == "53300" || (state.isEmpty && refusal == .full) }
}
