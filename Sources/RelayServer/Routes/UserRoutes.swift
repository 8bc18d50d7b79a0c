import RelayModel
import Storage

/// CloudKit's calls that tell a client who it is, and the page for those who are nobody yet.
struct UserRoutes: Sendable {
    private let callers: CallerLookup

    init(_ dependencies: RelayDependencies) {
        callers = CallerLookup(dependencies)
    }

    var routes: [RelayRoute] {
        let prefix = "/database/1/{container}/{environment}/public/users"
        return [
            RelayRoute(.client, "GET", "\(prefix)/caller", respond: caller),
            RelayRoute(.client, "GET", "\(prefix)/current", respond: caller),
            RelayRoute(
                .client, "GET", "/sign-in/1/{container}/{environment}", respond: signInPage),
        ]
    }

    /// The flat form: it satisfies CloudKit JS and MistKit.
    private func caller(_ request: RelayRequest) async throws -> RelayAnswer {
        let admitted = try await callers.admit(request, database: .public)
        let user = try admitted.user()
        return RelayAnswer(json: ["userRecordName": .string(user.rawValue)])
            .keepingUserToken(of: request)
    }

    /// Where `redirectURL` leads if nothing else is configured.
    private func signInPage(_ request: RelayRequest) async throws -> RelayAnswer {
        let key = try await callers.settings(request.containerKey()).key
        return RelayAnswer(
            text: """
                Users of \(key.container) (\(key.environment.rawValue)) sign in with the \
                application's own identity provider.
                The application sends that provider's token as ckWebAuthToken, or as \
                Authorization: Bearer.
                An operator can set signIn.url to lead users there.

                """)
    }
}
