package import RelayModel

/// A provider token with its age, as it is kept across restarts.
///
/// The gateway counts tokens for each team, so a restart must not mint another one.
package struct ProviderTokenRecord: Sendable, Hashable {
    /// For which key and environment a token counts.
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

    /// For which key and environment it counts.
    package var key: Key
    /// The token as it stands behind `bearer`.
    package var token: ConcealedText
    /// The moment it claims to have been issued (its `iat`).
    package var issuedAt: Timestamp

    package init(key: Key, token: ConcealedText, issuedAt: Timestamp) {
        self.key = key
        self.token = token
        self.issuedAt = issuedAt
    }
}

/// Where provider tokens are kept across restarts.
///
/// Both closures are called on the gateway's own thread, about once an hour for each key; they
/// must return quickly.
package struct ProviderTokenStore: Sendable {
    /// Finds the last token that was kept.
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

    /// Keeps nothing: every start mints a token.
    package static let none = ProviderTokenStore(load: { _ in nil }, keep: { _ in })
}
