import PostgresLink
import Synchronization

/// Whether the server had no connection left for this process a moment ago.
///
/// Only who wants a connection learns it, so that it holds for some seconds: who is asked nothing
/// as long as it is not ready would never learn that there are some again.
final class ConnectionShortage: Sendable {
    private let noted = Mutex<Duration?>(nil)

    /// How long it holds; what is looked at once a second asks for a connection more often.
    private static let validity = Duration.seconds(5)
    /// What is told of it, without anything of the server.
    static let sentence =
        "the database has no connection left: raise max_connections, or end others"

    /// The sentence, if it is so at a moment.
    func reason(at moment: Duration) -> String? {
        guard let noted = noted.withLock({ $0 }), moment - noted < Self.validity else { return nil }
        return Self.sentence
    }

    /// Notes why a connection was not made.
    func note(_ error: PostgresError, at moment: Duration) {
        if error.isFull { noted.withLock { $0 = moment } }
    }

    /// Notes that one was made.
    func end() { noted.withLock { $0 = nil } }
}

extension PostgresError {
    /// Whether there was no connection left: of the server, the database or the role.
    var isFull: Bool { state == "53300" || (state.isEmpty && refusal == .full) }
}
