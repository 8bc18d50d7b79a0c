package import RelayModel

/// A provider token with its time of issue, as it is stored across restarts.
///
/// The gateway counts tokens for each team, so a restart must not mint another one.
package struct ProviderTokenRecord: Sendable, Hashable {
    /// The key and the environment for which a token is valid.
    package struct Key: Sendable, Hashable {
        /// The team.
        package var teamID: String
        /// The signing key.
        package var keyID: String
        /// The gateway's environment.
        package var environment: GatewayEnvironment

        package init(teamID: String, keyID: String, environment: GatewayEnvironment) {
            self.teamID = teamID
            self.keyID = keyID
            self.environment = environment
        }
    }

    /// The key and the environment for which the token is valid.
    package var key: Key
    /// The token as it follows `bearer` in the header.
    package var token: ConcealedText
    /// The time of issue that the token claims (its `iat`).
    package var issuedAt: Timestamp

    package init(key: Key, token: ConcealedText, issuedAt: Timestamp) {
        self.key = key
        self.token = token
        self.issuedAt = issuedAt
    }
}

/// The store of provider tokens across restarts.
///
/// Both closures are called on the gateway's own thread, about once an hour for each key. They must
/// return quickly.
package struct ProviderTokenStore: Sendable {
    /// Returns the last token that was kept.
    package var load: @Sendable (ProviderTokenRecord.Key) -> ProviderTokenRecord?
    /// Keeps a token that was just minted.
    package var keep: @Sendable (ProviderTokenRecord) -> Void

    package init(
        load: @escaping @Sendable (ProviderTokenRecord.Key) -> ProviderTokenRecord?,
        keep: @escaping @Sendable (ProviderTokenRecord) -> Void
    ) {
        self.load = load
        self.keep = keep
    }

    /// A store that keeps nothing, so every start mints a token.
    package static let none = ProviderTokenStore(load: { _ in nil }, keep: { _ in })
}
