import HTTPTypes
import RelayModel
import Storage

/// Fetches what authentication needs, and asks it.
struct CallerLookup: Sendable {
    private let dependencies: RelayDependencies

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
    }

    /// A call that was let in.
    struct Admitted: Sendable {
        let settings: ContainerSettings
        let caller: Caller
        let redirectURL: String

        /// The user on whose behalf the call is made.
        func user() throws(AuthenticationRefusal) -> UserID {
            try caller.requiredUser(redirectURL: redirectURL)
        }
    }

    /// Who makes the call `request` in the container that its path names.
    ///
    /// - Throws: 404 for an unknown container, ``AuthenticationRefusal`` for everything else.
    func admit(_ request: RelayRequest, database: DatabaseScope?) async throws -> Admitted {
        let desk = try await desk(of: request)
        let caller = try desk.authenticator.caller(of: request, database: database)
        let settings = desk.authenticator.settings
        try count(caller, of: settings, request)
        if case .signature = caller.proof { try await useSignature(of: request, settings.key) }
        await desk.sessions.renew(desk.authenticator.session, for: caller, request)
        return Admitted(
            settings: settings, caller: caller, redirectURL: desk.authenticator.redirectURL)
    }

    /// Where one request is judged.
    private struct Desk: Sendable {
        let authenticator: Authenticator
        let sessions: SessionDesk
    }

    /// Collects what the store knows of those whom the request names.
    private func desk(
        of request: RelayRequest, withSession: Bool = true
    ) async throws -> Desk {
        let settings = try await self.settings(request.containerKey())
        let sessions = SessionDesk(dependencies, settings: settings)
        let authenticator = Authenticator(
            settings: settings,
            keys: try await dependencies.registry.accessKeys(of: settings.key),
            redirectURL: redirectURL(of: settings.key, request),
            session: withSession ? try await sessions.standing(of: request) : nil)
        return Desk(authenticator: authenticator, sessions: sessions)
    }

    /// Counts a request as its user's, once: who is let in before the body is asked for again
    /// after it.
    private func count(
        _ caller: Caller, of container: ContainerSettings, _ request: RelayRequest
    ) throws(APIError) {
        guard let user = caller.user, request.renewal.countUser() else { return }
        try dependencies.turnstile.use(user: user, of: container)
    }

    /// Lets a signature count once where something may be changed: whoever copied a request could
    /// otherwise have it carried out again for as long as its date is good.
    private func useSignature(
        of request: RelayRequest, _ container: ContainerKey
    ) async throws {
        guard request.effect == .changes, !request.renewal.isSignatureUsed,
            let nonce = try ServerSignature(request)?.nonce
        else { return }
        guard
            try await dependencies.registry.useSignature(
                nonce.bytes, of: container, until: nonce.until, at: request.receivedAt)
        else { throw AuthenticationRefusal.signature(.usedBefore) }
        request.renewal.noteSignature()
    }

    /// Looks whether somebody makes the call whom the container knows, and who may make it, as far
    /// as that shows before the body is read.
    ///
    /// Without a body there is nothing to spare, and the call itself asks for all. With one it asks
    /// again, because much may have happened while the body came; only then is a signature
    /// verified and used, and a token renewed.
    ///
    /// - Throws: As ``admit(_:database:)``.
    func recognize(
        _ request: RelayRequest, as callers: RelayRoute.Callers
    ) async throws -> RelayRoute.Admission {
        // For an unknown key no session is looked up.
        let keyed = try await desk(of: request, withSession: false).authenticator
        let key = try keyed.recognizeKey(of: request)
        if request.announcesBody {
            let authenticator = try await desk(of: request).authenticator
            let caller = try authenticator.caller(holding: key, request)
            if callers.needUser(of: request) {
                _ = try caller.requiredUser(redirectURL: authenticator.redirectURL)
            }
            // Who signs has proven nothing yet: nobody else must use up what is theirs.
            if key.kind != .serverToServer {
                try count(caller, of: authenticator.settings, request)
            }
        }
        return RelayRoute.Admission(container: keyed.settings, key: key.id)
    }

    /// Where the user signs in, who is to come back to the page that asks.
    private func redirectURL(of container: ContainerKey, _ request: RelayRequest) -> String {
        SignInAddress(configured: dependencies.signInURL, publicURL: dependencies.publicURL)
            .url(of: container, origin: request.header("Origin"))
    }

    /// The settings of a container.
    ///
    /// - Throws: 404 if it is unknown.
    func settings(_ key: ContainerKey) async throws -> ContainerSettings {
        guard let settings = try await dependencies.registry.container(key) else {
            throw APIError(
                .notFound,
                "there is no container \(key.container) in \(key.environment.rawValue)")
        }
        return settings
    }
}

extension RelayAnswer {
    /// Hands clients a user token for the next request, as CloudKit's expect: a fresh one of the
    /// session, or, where the container has no sessions, theirs back.
    func keepingUserToken(of request: RelayRequest) -> RelayAnswer {
        guard let token = request.renewal.token ?? Authenticator.cloudKitUserToken(of: request),
            token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
        else { return self }
        var answer = self
        answer.headers[.webAuthToken] = token
        if request.query["ckSession"] != nil { answer.headers[.session] = token }
        return answer
    }
}
