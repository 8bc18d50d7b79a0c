import Logging
import RelayModel
import Storage

/// Looks sessions up, starts and renews them.
struct SessionDesk: Sendable {
    private let dependencies: RelayDependencies
    private let settings: ContainerSettings

    init(_ dependencies: RelayDependencies, settings: ContainerSettings) {
        self.dependencies = dependencies
        self.settings = settings
    }

    /// What is known of the session of the request's user token; `nil` if it has none.
    func standing(of request: RelayRequest) async throws -> SessionStanding? {
        guard (request.query["ckAPIToken"] ?? request.header("ckAPIToken")) != nil,
            let token = Authenticator.userToken(of: request),
            let id = SessionStanding.sessionID(of: token)
        else { return nil }
        return SessionStanding(
            secret: try await dependencies.registry.sessionSecret(), id: id,
            session: try await dependencies.registry.session(id, of: settings.key))
    }

    /// Leaves a fresh token for the answer, if the container has sessions.
    ///
    /// An identity provider's token begins a session, or begins it anew when it has ended. Where
    /// the store cannot write that now, the call goes on without.
    func renew(_ standing: SessionStanding?, for caller: Caller, _ request: RelayRequest) async {
        guard let standing, let user = caller.user, let lifetime = settings.sessions else { return }
        let now = request.receivedAt
        var session = standing.session
        if session.map({ $0.endsAt <= now }) ?? true {
            let fresh = UserSession(
                id: standing.id, container: settings.key, user: user, startedAt: now,
                endsAt: now.advanced(by: .seconds(lifetime.days * 86_400)),
                tokenEndsAt: Authenticator.userToken(of: request).flatMap(Self.expiration))
            do {
                session = try await dependencies.registry.startSession(fresh)
            } catch {
                dependencies.logger.warning(
                    "could not start a session", metadata: ["reason": "\(error)"])
                return
            }
        }
        guard let session, session.revokedAt == nil, session.user == user else { return }
        let wanted = now.advanced(by: .seconds(lifetime.minutes * 60))
        request.renewal.renew(
            SessionToken.make(
                session: session.id, expiresAt: min(wanted, session.endsAt),
                container: settings.key, secret: standing.secret,
                chance: dependencies.randomBytes(8)))
    }

    /// Ends the session of the request's user token, and with it every token of the session; the
    /// identity provider's token from which it began does not count any more either.
    func signOut(_ request: RelayRequest, user: UserID) async throws {
        guard let standing = try await standing(of: request) else { return }
        let now = request.receivedAt
        let days = settings.sessions?.days ?? SessionSettings().days
        let end = now.advanced(by: .seconds(days * 86_400))
        try await dependencies.registry.revokeSession(
            UserSession(
                id: standing.id, container: settings.key, user: user, startedAt: now,
                endsAt: end,
                tokenEndsAt: Authenticator.userToken(of: request).flatMap(Self.expiration)), at: now
        )
    }

    /// The `exp` of an identity provider's token that has been verified.
    private static func expiration(of token: String) -> Timestamp? {
        guard !SessionToken.isOne(token), let parts = try? SplitToken(token) else { return nil }
        return parts.claims["exp"].flatMap(\.double).flatMap(Timestamp.init(secondsSince1970:))
    }
}
