public import Crypto

/// The environment that a gateway stands for, and that keys and device tokens belong to.
public enum SimulatedEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Tokens of builds under development (APNs: the sandbox host).
    case development
    /// Tokens of distributed builds.
    case production
}

/// The public half of a provider's signing key, as it is known to the gateway.
public struct SigningKey: Sendable {
    /// The key identifier, `kid` in a provider token.
    public var keyID: String
    /// The team, `iss` in a provider token.
    public var teamID: String
    /// The public key.
    public var publicKey: P256.Signing.PublicKey
    /// The topics it may push to; `nil` for all of the team's.
    public var topics: Set<String>?
    /// The only environment it is valid for; `nil` for both.
    public var environment: SimulatedEnvironment?

    /// Unless limited, the key is good for all topics of its team in both environments.
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
    /// - Throws: An error of swift-crypto if the text is neither for the curve P-256.
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

/// Which providers a gateway believes.
public enum ProviderTrust: Sendable {
    /// Provider tokens signed by one of these keys.
    case keys([SigningKey])
    /// Any provider token of the right form; its signature is not verified.
    case anyKey
}
