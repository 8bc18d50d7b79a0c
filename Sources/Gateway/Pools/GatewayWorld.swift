package import RelayModel

/// The gateway's dependencies: clocks, randomness, credentials, and observers.
package struct GatewayWorld: Sendable {
    /// Returns the credentials.
    package var credentials: CredentialSource
    /// The wall clock, for provider tokens.
    package var wallClock: @Sendable () -> Timestamp
    /// The source of randomness.
    package var generator: any RandomNumberGenerator & Sendable
    /// The store of provider tokens.
    package var tokenStore: ProviderTokenStore
    /// Returns whether a registration has ended since it was judged.
    ///
    /// It is called for each push on the gateway's thread, immediately before the push goes to a
    /// connection.
    package var hasEnded: @Sendable (JudgedRegistration) -> Bool
    /// Receives events of connections, on the gateway's thread.
    ///
    /// It must return quickly.
    package var observer: @Sendable (GatewayEvent) -> Void

    package init(
        credentials: @escaping CredentialSource,
        wallClock: @escaping @Sendable () -> Timestamp,
        generator: any RandomNumberGenerator & Sendable,
        tokenStore: ProviderTokenStore = .none,
        hasEnded: @escaping @Sendable (JudgedRegistration) -> Bool = { _ in false },
        observer: @escaping @Sendable (GatewayEvent) -> Void = { _ in }
    ) {
        self.credentials = credentials
        self.wallClock = wallClock
        self.generator = generator
        self.tokenStore = tokenStore
        self.hasEnded = hasEnded
        self.observer = observer
    }
}
