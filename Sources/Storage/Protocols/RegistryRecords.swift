package import RelayModel

/// The settings of a container in one environment.
package struct ContainerSettings: Sendable, Hashable {
    /// The container and environment.
    package var key: ContainerKey
    /// The topics that its devices may name (APNs: bundle IDs); the first is the default.
    package var topics: [String]
    /// The signing key for the push gateway; without it and ``certificate`` nothing can be sent.
    package var credential: ProviderCredential?
    /// The client certificate for the push gateway, instead of a signing key.
    package var certificate: ProviderCertificate?
    /// How the application's user tokens are verified; `nil` means that no user can sign in.
    package var userTokens: UserTokenSettings?
    /// How long the gateway keeps a push, in seconds, where the subscription does not say.
    package var expirationSeconds: Int64
    /// Whether notifications are kept in their users' inboxes.
    package var keepsInbox = false
    /// How long users' session tokens count; `nil` hands out none.
    package var sessions: SessionSettings? = SessionSettings()
    /// What conditions may cost its changes, where that is not as the configuration says.
    package var costs = CostBounds()

    /// How much it may have, where that is not as the configuration says.
    package var quotas = Quotas()
    /// How often its keys and users may come, where that is not as the configuration says.
    package var rates = RequestRates()

    /// Creates settings; pushes are kept for 30 days unless said otherwise.
    package init(key: ContainerKey, topics: [String]) {
        self.key = key
        self.topics = topics
        expirationSeconds = 30 * 86_400
    }
}

/// How long session tokens of users count.
///
/// Apple says 30 minutes, or two weeks for those who stay signed in; measured, its tokens keep
/// working for about a day.
package struct SessionSettings: Sendable, Hashable {
    /// The minutes for which one token is good.
    package var minutes: Int
    /// The days after which a session ends, however often its tokens are renewed.
    package var days: Int

    /// Creates settings: a token is good for a day, a session for two weeks.
    package init(minutes: Int = 1440, days: Int = 14) {
        self.minutes = minutes
        self.days = days
    }
}

/// A token-signing key of the gateway's provider.
package struct ProviderCredential: Sendable, Hashable, CustomStringConvertible {
    /// The team (APNs: ten characters).
    package var teamID: String
    /// The key (APNs: ten characters).
    package var keyID: String
    /// The ECDSA P-256 private key in PEM form: a secret.
    package var privateKeyPEM: String

    package init(teamID: String, keyID: String, privateKeyPEM: String) {
        self.teamID = teamID
        self.keyID = keyID
        self.privateKeyPEM = privateKeyPEM
    }

    /// The names without the secret.
    package var description: String { "team \(teamID), key \(keyID)" }
}

/// A TLS client certificate of the gateway's provider, with its private key.
package struct ProviderCertificate: Sendable, Hashable, CustomStringConvertible {
    /// How the file is packed.
    package enum Packing: String, Sendable, Hashable, CaseIterable {
        /// PEM texts, certificates and key one after the other.
        case pem
        /// A PKCS#12 file (`.p12`).
        case pkcs12
    }

    /// How the file is packed.
    package var packing: Packing
    /// The file's bytes: a secret.
    package var bytes: [UInt8]
    /// The passphrase of the key, empty for none: a secret.
    package var passphrase: String

    package init(packing: Packing, bytes: [UInt8], passphrase: String) {
        self.packing = packing
        self.bytes = bytes
        self.passphrase = passphrase
    }

    /// The form without the secrets.
    package var description: String { "certificate (\(packing.rawValue))" }
}

/// How an application's user tokens (JWT) are verified.
package struct UserTokenSettings: Sendable, Hashable, CustomStringConvertible {
    /// The shared secret of HS256 tokens; `nil` refuses them.
    package var sharedSecret: String?
    /// A JSON Web Key Set with the public keys of RS256, ES256 and EdDSA tokens.
    package var keySet: String?
    /// The value that `iss` must have; `nil` accepts any.
    package var issuer: String?
    /// The value that `aud` must have; `nil` accepts any.
    package var audience: String?
    /// The claim that names the user.
    package var userClaim: String

    /// Creates settings that read the user from `sub`.
    package init(
        sharedSecret: String? = nil, keySet: String? = nil, issuer: String? = nil,
        audience: String? = nil, userClaim: String = "sub"
    ) {
        self.sharedSecret = sharedSecret
        self.keySet = keySet
        self.issuer = issuer
        self.audience = audience
        self.userClaim = userClaim
    }

    /// The settings without the secret.
    package var description: String {
        "\(sharedSecret == nil ? "" : "HS256 ")\(keySet == nil ? "" : "JWKS ")claim \(userClaim)"
    }
}

/// A key with which somebody calls the relay.
package struct AccessKey: Sendable, Hashable {
    /// What a key is for.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A container's API token, which comes with a user token.
        case apiToken
        /// A CloudKit server-to-server key: the public half.
        case serverToServer
        /// A bearer key of the application's own servers.
        case bearer
    }

    /// The name; for ``Kind/serverToServer`` the key ID of the request header.
    package var id: String
    /// The container and environment it is good for.
    package var container: ContainerKey
    /// What it is for.
    package var kind: Kind
    /// SHA-256 of the secret in hexadecimal digits; for ``Kind/serverToServer`` the public key in
    /// PEM form.
    package var verifier: String
    /// What people call it.
    package var label: String
    /// When it was made.
    package var createdAt: Timestamp
    /// When it was revoked, if it was.
    package var revokedAt: Timestamp?

    package init(
        id: String, container: ContainerKey, kind: Kind, verifier: String, label: String,
        createdAt: Timestamp
    ) {
        self.id = id
        self.container = container
        self.kind = kind
        self.verifier = verifier
        self.label = label
        self.createdAt = createdAt
    }
}

/// A change source's configuration as the registry keeps it.
package struct StoredSource: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The name in the webhook's URL.
    package var name: SourceName
    /// The configuration as JSON, secrets included; `ChangeSources` reads it.
    package var definition: JSONValue
    /// When it was saved.
    package var savedAt: Timestamp

    package init(
        container: ContainerKey, name: SourceName, definition: JSONValue, savedAt: Timestamp
    ) {
        self.container = container
        self.name = name
        self.definition = definition
        self.savedAt = savedAt
    }
}

/// Whose subscriptions: the first part of their key.
package struct SubscriptionOwner: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The database of the request.
    package var database: DatabaseScope
    /// The user.
    package var user: UserID

    package init(container: ContainerKey, database: DatabaseScope, user: UserID) {
        self.container = container
        self.database = database
        self.user = user
    }
}

/// Whether a refused operation undoes its neighbours.
package enum EditAtomicity: Sendable, Hashable {
    /// Each operation stands for itself.
    case independent
    /// All are applied, or none.
    case allOrNothing
}

/// One operation on subscriptions.
package enum SubscriptionEdit: Sendable, Hashable {
    /// Saves a new subscription. The same ID with the same content again succeeds (idempotent); the
    /// same content under another ID is refused.
    case create(Subscription)
    /// Replaces the subscription with the same ID.
    case update(Subscription)
    /// Deletes the subscription with this ID.
    case delete(SubscriptionID)
}

/// What became of one operation.
package enum SubscriptionEditOutcome: Sendable, Hashable {
    /// It is saved; every change after the version's activation position is judged.
    case saved(SubscriptionVersion)
    /// The same was saved before; nothing changed.
    case unchanged(SubscriptionVersion)
    /// It is deleted.
    case deleted(SubscriptionID)
    /// There is none with this ID.
    case notFound(SubscriptionID)
    /// A subscription with this ID and other content exists.
    case exists(SubscriptionID)
    /// The same content is saved under `existing`.
    case duplicate(of: SubscriptionID)
    /// The user or the container has as much as a quota allows.
    case overQuota(QuotaRefusal)
    /// It would have been applied, but another operation of the atomic request was refused.
    case undone
}

/// One version of a subscription.
package struct SubscriptionVersion: Sendable, Hashable {
    /// The registry's number, ascending, never used twice: the stable order of fan-out.
    package var serial: UInt64
    /// The subscription.
    package var subscription: Subscription
    /// The log position at which it was saved; later changes are judged.
    package var activation: LogPosition

    package init(serial: UInt64, subscription: Subscription, activation: LogPosition) {
        self.serial = serial
        self.subscription = subscription
        self.activation = activation
    }
}

/// One version of a device.
package struct DeviceVersion: Sendable, Hashable {
    /// The registry's number, ascending, never used twice: the stable order of fan-out.
    package var serial: UInt64
    /// The device.
    package var device: Device
    /// When the token was registered, by the relay's clock.
    package var registeredAt: Timestamp
    /// The log position at which it was registered.
    package var activation: LogPosition

    package init(
        serial: UInt64, device: Device, registeredAt: Timestamp, activation: LogPosition
    ) {
        self.serial = serial
        self.device = device
        self.registeredAt = registeredAt
        self.activation = activation
    }
}

/// What a source sent and could not be mapped.
package struct ParkedChange: Sendable, Hashable {
    /// The number, ascending; 0 before it is parked.
    package var number: UInt64
    /// The container and environment of the source.
    package var container: ContainerKey
    /// The source.
    package var source: SourceName
    /// Why it could not be mapped.
    package var reason: String
    /// The place in the body, as a path; empty for the whole.
    package var path: String
    /// What the source sent: one item of a batch, or the whole body.
    package var body: [UInt8]
    /// The headers that mapping looks at, without credentials.
    package var headers: [String: String]
    /// When it came.
    package var receivedAt: Timestamp

    /// Creates a parked change without a number.
    package init(
        container: ContainerKey, source: SourceName, reason: String, path: String, body: [UInt8],
        headers: [String: String], receivedAt: Timestamp
    ) {
        number = 0
        self.container = container
        self.source = source
        self.reason = reason
        self.path = path
        self.body = body
        self.headers = headers
        self.receivedAt = receivedAt
    }
}

/// Which receipts somebody wants to see; every part that is set narrows them.
package struct ReceiptFilter: Sendable, Hashable {
    /// Those of one delivery.
    package var deliveryID: DeliveryID?
    /// Those of one change.
    package var position: LogPosition?
    /// Those of one version of a subscription.
    package var subscriptionSerial: UInt64?
    /// Those of one version of a device.
    package var deviceSerial: UInt64?
    /// Those with one outcome.
    package var outcome: DeliveryReceipt.Outcome?

    /// Creates a filter that lets everything pass.
    package init() {}
}

/// A provider token as it is kept over a restart.
package struct StoredProviderToken: Sendable, Hashable {
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
