package import RelayModel

/// The signed tokens that the relay shows to the gateway, kept across restarts.
package protocol ProviderTokenRegistry: Sendable {
    /// Saves the gateway's current provider token, so that a restart does not create another one,
    /// and deletes tokens that are older by ``StoredProviderToken/keptFor``.
    func saveProviderToken(_ token: StoredProviderToken) async throws
    /// Returns the saved provider tokens.
    func providerTokens() async throws -> [StoredProviderToken]
}

/// A provider token as it is kept across restarts.
package struct StoredProviderToken: Sendable, Hashable {
    /// The age, relative to a new token, up to which old tokens are kept.
    ///
    /// No token is used for longer than an hour, but a clock may be wrong.
    package static let keptFor = Duration.seconds(86_400)

    /// The team ID.
    package var teamID: String
    /// The key ID.
    package var keyID: String
    /// The gateway's environment.
    package var environment: GatewayEnvironment
    /// The signed token, which is a secret.
    package var token: String
    /// The moment in the token's `iat` claim.
    package var issuedAt: Timestamp

    package init(
        teamID: String, keyID: String, environment: GatewayEnvironment, token: String,
        issuedAt: Timestamp
    ) {
        self.teamID = teamID
        self.keyID = keyID
        self.environment = environment
        self.token = token
        self.issuedAt = issuedAt
    }
}
