public import Crypto

/// The environment that a gateway serves, and that keys and device tokens belong to.
public enum SimulatedEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Tokens of builds under development (APNs: the sandbox host).
    case development
    /// Tokens of distributed builds.
    case production
}

/// The public half of a provider's signing key, as the gateway knows it.
public struct SigningKey: Sendable {
    /// The key identifier, `kid` in a provider token.
    public var keyID: String
    /// The team, `iss` in a provider token.
    public var teamID: String
    /// The public key.
    public var publicKey: P256.Signing.PublicKey
    /// The topics that the key may push to; `nil` for all topics of the team.
    public var topics: Set<String>?
    /// The only environment that the key is valid for; `nil` for both.
    public var environment: SimulatedEnvironment?

    /// Creates a key.
    ///
    /// By default, it is valid for all topics of its team in both environments.
    public init(
        keyID: String, teamID: String, publicKey: P256.Signing.PublicKey,
        topics: Set<String>? = nil, environment: SimulatedEnvironment? = nil
    ) {
        self.keyID = keyID
        self.teamID = teamID
        self.publicKey = publicKey
        self.topics = topics
        self.environment = environment
    }

    /// Creates a key from the PEM text of the public key (`BEGIN PUBLIC KEY`) or of the private key
    /// (`BEGIN PRIVATE KEY`, the form of Apple's `.p8` files).
    ///
    /// - Throws: An error of swift-crypto if the text is not a key on the curve P-256.
    public init(
        keyID: String, teamID: String, pem: String, topics: Set<String>? = nil,
        environment: SimulatedEnvironment? = nil
    ) throws {
        let isPrivate = pem.contains("PRIVATE KEY-----")
        let publicKey =
            isPrivate
            ? try P256.Signing.PrivateKey(pemRepresentation: pem).publicKey
            : try P256.Signing.PublicKey(pemRepresentation: pem)
        self.init(
            keyID: keyID, teamID: teamID, publicKey: publicKey, topics: topics,
            environment: environment)
    }
}

/// The providers that a gateway trusts.
public enum ProviderTrust: Sendable {
    /// Provider tokens signed by one of these keys.
    case keys([SigningKey])
    /// Any well-formed provider token. Its signature is not verified.
    case anyKey
}
