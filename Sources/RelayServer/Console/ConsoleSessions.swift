import RelayModel
import Synchronization

/// Who is signed in at the console.
///
/// It is in memory alone: a restart ends every session. Concurrency: a lock around a value.
package final class ConsoleSessions: Sendable {
    private let table: Mutex<ConsoleSessionTable>
    let settings: ConsoleSettings
    private let identifiers: RandomIdentifiers

    /// Nobody is signed in at first.
    package init(
        _ settings: ConsoleSettings = ConsoleSettings(),
        randomBytes: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.settings = settings
        table = Mutex(ConsoleSessionTable(settings))
        identifiers = RandomIdentifiers(randomBytes)
    }

    /// Begins a session with the token of this verifier; returns the secret that stands for it.
    ///
    /// - Throws: 429 if too many are signed in.
    func begin(
        with token: String, at now: Timestamp
    ) throws(APIError) -> (secret: String, session: ConsoleSession) {
        guard settings.isEnabled else {
            throw APIError(.notFound, "the console is off: console.enabled is off")
        }
        let secret = identifiers.digits(bytes: 32)
        let name = Secrets.verifier(of: secret)
        guard let session = table.withLock({ $0.begin(name, with: token, at: now) }) else {
            throw APIError(
                .throttled, "too many are signed in at the console", retryAfter: 60)
        }
        return (secret, session)
    }

    /// The session that `secret` stands for.
    ///
    /// - Throws: ``AuthenticationRefusal/adminSession(_:)`` if it has ended, or never was.
    func use(_ secret: String, at now: Timestamp) throws(AuthenticationRefusal) -> ConsoleSession {
        let name = Secrets.verifier(of: secret)
        guard let session = table.withLock({ $0.use(name, at: now) }) else {
            throw .adminSession("it has ended, or the relay was started anew; sign in again")
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

    /// Makes a code with which one session can begin as the token of this verifier.
    func makeCode(
        for token: String, at now: Timestamp
    ) -> (code: String, endsAt: Timestamp) {
        let code = identifiers.digits(bytes: 32)
        let name = Secrets.verifier(of: code)
        return (code, table.withLock { $0.keep(code: name, for: token, at: now) })
    }

    /// The page that signs in with a code: what stands behind the mark never leaves the browser
    /// with an address.
    static func path(with code: String) -> String { "/console/#code=\(code)" }

    /// The verifier of the token for which `code` was made, once.
    func redeem(_ code: String, at now: Timestamp) -> String? {
        let name = Secrets.verifier(of: code)
        return table.withLock { $0.redeem(code: name, at: now) }
    }

    /// How many are signed in, with those that have ended and nobody looked since.
    var count: Int { table.withLock { $0.count } }
}
