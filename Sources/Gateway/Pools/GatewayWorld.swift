package import RelayModel

/// The world as the gateway sees it: clocks, chance, credentials, and who is told what.
package struct GatewayWorld: Sendable {
    /// Finds credentials.
    package var credentials: CredentialSource
    /// The wall clock, for provider tokens.
    package var wallClock: @Sendable () -> Timestamp
    /// Chance.
    package var generator: any RandomNumberGenerator & Sendable
    /// Where provider tokens are kept.
    package var tokenStore: ProviderTokenStore
    /// Says whether a registration has ended since it was judged; asked for each push on the
    /// gateway's thread, right before it goes to a connection.
    package var hasEnded: @Sendable (JudgedRegistration) -> Bool
    /// Is told what happens to connections, on the gateway's thread; it must return quickly.
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
