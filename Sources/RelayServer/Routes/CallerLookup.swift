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
        let settings = try await self.settings(request.containerKey())
        let keys = try await dependencies.registry.accessKeys(of: settings.key)
        let redirectURL = redirectURL(of: settings.key, request)
        let sessions = SessionDesk(dependencies, settings: settings)
        let standing = try await sessions.standing(of: request)
        let caller = try Authenticator(
            settings: settings, keys: keys, redirectURL: redirectURL, session: standing
        ).caller(of: request, database: database)
        if let user = caller.user {
            try dependencies.turnstile.use(user: user, of: settings.key)
        }
        if case .signature = caller.proof { try await useSignature(of: request, settings.key) }
        await sessions.renew(standing, for: caller, request)
        return Admitted(settings: settings, caller: caller, redirectURL: redirectURL)
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

    /// Looks whether somebody makes the call whom the container knows, as far as that shows before
    /// the body is read.
    ///
    /// Container and keys come from memory, so that it costs little to ask twice.
    ///
    /// - Throws: As ``admit(_:database:)``.
    func recognize(_ request: RelayRequest) async throws -> RelayRoute.Admission {
        let settings = try await self.settings(request.containerKey())
        let keys = try await dependencies.registry.accessKeys(of: settings.key)
        let key = try Authenticator(
            settings: settings, keys: keys, redirectURL: redirectURL(of: settings.key, request)
        ).recognize(request)
        return RelayRoute.Admission(container: settings.key, key: key.id)
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
