import Logging
import RelayModel
import Storage
import Synchronization

/// Looks up, starts and renews sessions.
struct SessionService: Sendable {
    let registry: any SessionRegistry
    /// Returns as many unpredictable bytes as requested.
    let randomBytes: @Sendable (Int) -> [UInt8]
    let logger: Logger

    private let secret = SessionSecret()
    private let marks = KeyMarks()
    private let failures = SessionFailures()

    /// Creates a service for the sessions of `registry`.
    init(
        registry: any SessionRegistry, randomBytes: @escaping @Sendable (Int) -> [UInt8],
        logger: Logger
    ) {
        self.registry = registry
        self.randomBytes = randomBytes
        self.logger = logger
    }

    /// Returns the known state of the session of the request's user token.
    ///
    /// It is `nil` if there is no user token, or the request has another key than an API token. The
    /// user token is not examined then, because the key decides who the user is.
    func standing(
        of request: RelayRequest, in container: ContainerSettings
    ) async throws -> SessionStanding? {
        guard Authenticator.apiToken(of: request) != nil,
            let token = Authenticator.userToken(of: request),
            let id = SessionStanding.sessionID(of: token)
        else { return nil }
        var standing = SessionStanding(
            secret: try await secret.value(orRead: registry.sessionSecret), id: id,
            session: try await registry.session(id, of: container.key))
        if SessionToken.isOne(token) {
            standing.keys = marks.value(of: container, standing.secret)
        }
        return standing
    }

    /// Returns a new token for the answer; `nil` if the container has no sessions.
    ///
    /// The token names the key that verified the user of the old one. An identity provider's token
    /// starts a session, or starts it again if it has ended. If the store cannot write at the
    /// moment, the call continues without a new token.
    func renewed(
        _ standing: SessionStanding?, of container: ContainerSettings, for caller: Caller,
        _ request: RelayRequest, _ verified: VerifiedUserToken?
    ) async -> String? {
        guard let standing, let user = caller.user, let lifetime = container.sessions,
            let key = verified.map({ SessionToken.mark(of: $0.key, secret: standing.secret) })
                ?? Authenticator.userToken(of: request).flatMap(SessionToken.init)?.key
        else { return nil }
        let now = request.receivedAt
        var session = standing.session
        if session.map({ $0.endsAt <= now }) ?? true {
            let fresh = UserSession(
                id: standing.id, container: container.key, user: user, startedAt: now,
                endsAt: now.advanced(by: .seconds(lifetime.days * 86_400)),
                tokenEndsAt: Authenticator.userToken(of: request).flatMap(Self.expiration))
            do {
                session = try await registry.startSession(fresh)
            } catch {
                failures.log(error, of: container.key, at: now, to: logger)
                return nil
            }
        }
        guard let session, session.revokedAt == nil, session.user == user else { return nil }
        let wanted = now.advanced(by: .seconds(lifetime.minutes * 60))
        return SessionToken.make(
            session: session.id, expiresAt: min(wanted, session.endsAt),
            container: container.key, secret: standing.secret, key: key,
            chance: randomBytes(8))
    }

    /// Ends the session of the request's user token, and with it all tokens of the session.
    ///
    /// The identity provider's token that started it is no longer valid either.
    func signOut(
        _ request: RelayRequest, user: UserID, of container: ContainerSettings
    ) async throws {
        guard let standing = try await standing(of: request, in: container) else { return }
        let now = request.receivedAt
        let days = container.sessions?.days ?? SessionSettings().days
        let end = now.advanced(by: .seconds(days * 86_400))
        try await registry.revokeSession(
            UserSession(
                id: standing.id, container: container.key, user: user, startedAt: now,
                endsAt: end,
                tokenEndsAt: Authenticator.userToken(of: request).flatMap(Self.expiration)), at: now
        )
    }

    /// Returns when a user token expires, according to the token itself.
    static func end(of token: String) -> Timestamp? {
        SessionToken(token)?.expiresAt ?? expiration(of: token)
    }

    /// Returns the `exp` of an identity provider's token that was verified.
    private static func expiration(of token: String) -> Timestamp? {
        guard !SessionToken.isOne(token), let parts = try? SplitToken(token) else { return nil }
        return parts.claims["exp"].flatMap(\.double).flatMap(Timestamp.init(secondsSince1970:))
    }
}

/// The secret of a store's session tokens, which never changes once it was read.
private final class SessionSecret: Sendable {
    private let known = Mutex<[UInt8]?>(nil)

    func value(orRead read: () async throws -> [UInt8]) async throws -> [UInt8] {
        if let known = known.withLock({ $0 }) { return known }
        let secret = try await read()
        known.withLock { $0 = secret }
        return secret
    }
}

/// Logs that sessions cannot be started, at intervals for each container.
///
/// While the store has no space, every call without a session would log it.
private final class SessionFailures: Sendable {
    private let lines = Mutex(QuietLines<ContainerKey>())

    func log(
        _ error: any Error, of container: ContainerKey, at now: Timestamp, to logger: Logger
    ) {
        let unlogged = lines.withLock { $0.take(container, at: .seconds(now.seconds)) }
        guard let unlogged else { return }
        logger.warning(
            "could not start a session",
            metadata: [
                "reason": "\(error)", "unloggedBefore": .stringConvertible(unlogged),
            ])
    }
}

/// A cache of how session tokens name the keys of containers.
///
/// A key set is long, and every call needs the names.
private final class KeyMarks: Sendable {
    private let known = Mutex<[ContainerKey: (settings: UserTokenSettings, marks: [[UInt8]])]>([:])

    func value(of container: ContainerSettings, _ secret: [UInt8]) -> [[UInt8]] {
        guard let settings = container.userTokens else { return [] }
        if let known = known.withLock({ $0[container.key] }), known.settings == settings {
            return known.marks
        }
        let marks = settings.keyIdentities.map { SessionToken.mark(of: $0, secret: secret) }
        known.withLock { $0[container.key] = (settings, marks) }
        return marks
    }
}
