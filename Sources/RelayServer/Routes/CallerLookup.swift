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
        let redirectURL = redirectURL(settings.key)
        let sessions = SessionDesk(dependencies, settings: settings)
        let standing = try await sessions.standing(of: request)
        let caller = try Authenticator(
            settings: settings, keys: keys, redirectURL: redirectURL, session: standing
        ).caller(of: request, database: database)
        await sessions.renew(standing, for: caller, request)
        return Admitted(settings: settings, caller: caller, redirectURL: redirectURL)
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

    private func redirectURL(_ key: ContainerKey) -> String {
        dependencies.signInURL
            ?? "\(dependencies.publicURL)/sign-in/1/\(key.container)/\(key.environment.rawValue)"
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
