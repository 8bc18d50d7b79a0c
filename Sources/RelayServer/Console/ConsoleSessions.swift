import RelayModel
import Synchronization

/// The sessions of the console.
///
/// They exist only in memory: a restart ends every session.
///
/// Concurrency: a lock around a value.
package final class ConsoleSessions: Sendable {
    private let table: Mutex<ConsoleSessionTable>
    let settings: ConsoleSettings
    private let identifiers: RandomIdentifiers

    /// Creates an empty set of sessions.
    package init(
        _ settings: ConsoleSettings = ConsoleSettings(),
        randomBytes: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.settings = settings
        table = Mutex(ConsoleSessionTable(settings))
        identifiers = RandomIdentifiers(randomBytes)
    }

    /// Begins a session with the token of this verifier; returns the session's secret.
    ///
    /// - Throws: 429 if there are too many sessions.
    func begin(
        with token: String, at now: Timestamp
    ) throws(APIError) -> (secret: String, session: ConsoleSession) {
        guard settings.isEnabled else {
            throw APIError(.notFound, "the console is switched off (console.enabled)")
        }
        let secret = identifiers.digits(bytes: 32)
        let name = Secrets.verifier(of: secret)
        guard let session = table.withLock({ $0.begin(name, with: token, at: now) }) else {
            throw APIError(
                .throttled, "too many sessions are signed in at the console", retryAfter: 60)
        }
        return (secret, session)
    }

    /// Returns the session of `secret`, and renews it.
    ///
    /// - Throws: ``AuthenticationRefusal/adminSession(_:)`` if it has ended or never existed.
    func use(_ secret: String, at now: Timestamp) throws(AuthenticationRefusal) -> ConsoleSession {
        let name = Secrets.verifier(of: secret)
        guard let session = table.withLock({ $0.use(name, at: now) }) else {
            throw .adminSession("it has ended or the relay was restarted; sign in again")
        }
        return session
    }

    /// Ends a session.
    func end(_ secret: String) {
        let name = Secrets.verifier(of: secret)
        table.withLock { _ = $0.end(name) }
    }

    /// Ends all sessions of the token with this verifier.
    func endAll(with token: String) {
        table.withLock { $0.endAll(with: token) }
    }

    /// Creates a code with which one session can begin with the token of this verifier.
    func makeCode(
        for token: String, at now: Timestamp
    ) -> (code: String, endsAt: Timestamp) {
        let code = identifiers.digits(bytes: 32)
        let name = Secrets.verifier(of: code)
        return (code, table.withLock { $0.keep(code: name, for: token, at: now) })
    }

    /// Returns the path of the page that signs in with a code.
    ///
    /// The code is in the fragment, which browsers never send with an address.
    static func path(with code: String) -> String { "/console/#code=\(code)" }

    /// Returns the verifier of the token for which `code` was created, and invalidates the code.
    func redeem(_ code: String, at now: Timestamp) -> String? {
        let name = Secrets.verifier(of: code)
        return table.withLock { $0.redeem(code: name, at: now) }
    }

    /// The number of sessions, including ended ones that were not used since their end.
    var count: Int { table.withLock { $0.count } }
}
