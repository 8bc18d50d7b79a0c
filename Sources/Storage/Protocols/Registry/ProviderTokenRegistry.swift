package import RelayModel

/// The signed tokens that the relay shows to the gateway, over a restart.
package protocol ProviderTokenRegistry: Sendable {
    /// Saves the gateway's current provider token, so that a restart does not mint another; those
    /// that are older by ``StoredProviderToken/keptFor`` go.
    func saveProviderToken(_ token: StoredProviderToken) async throws
    /// The saved provider tokens.
    func providerTokens() async throws -> [StoredProviderToken]
}

/// A provider token as it is kept over a restart.
package struct StoredProviderToken: Sendable, Hashable {
    /// How much older than a new token one may be that is kept: none is shown after an hour, and a
    /// clock may be wrong.
    package static let keptFor = Duration.seconds(86_400)

    /// The team.
    package var teamID: String
    /// The key.
    package var keyID: String
    /// The gateway's environment.
    package var environment: GatewayEnvironment
    /// The signed token: a secret.
    package var token: String
    /// Its `iat`.
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
