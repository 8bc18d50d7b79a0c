import ChangeSources
import Crypto
import Foundation
import GatewaySimulator
import RelayModel
import RelayServer
import Storage

/// Everything that `belfry dev` makes up: a container with keys, users with devices, a change
/// source, and the secrets that go with them.
struct DevHouse: Sendable {
    /// A registered device that the commands speak of.
    struct Phone: Sendable {
        let owner: String
        let name: String
        let token: DeviceToken
    }

    static let container = "iCloud.com.example.Art"
    static let topic = "com.example.Art"
    static let teamID = "TEAM123456"
    static let keyID = "KEY1234567"
    static let source = "database"

    let folder: URL
    let signingKey = P256.Signing.PrivateKey()
    let apiToken: String
    let adminToken: String
    let sourceToken: String
    let userSecret: String
    let phones: [Phone]

    /// Makes up names and secrets; nothing is written yet.
    init(folder: URL, world: World) throws {
        self.folder = folder
        func secret() -> String { Hexadecimal.encode(world.randomBytes(24)) }
        apiToken = secret()
        adminToken = secret()
        sourceToken = secret()
        userSecret = secret()
        phones = try [
            ("alice", "alices-phone"), ("alice", "alices-tablet"), ("bob", "bobs-phone"),
        ].map { owner, name in
            guard let token = DeviceToken(rawValue: Hexadecimal.encode(world.randomBytes(32)))
            else { throw DevFailure("could not make a device token") }
            return Phone(owner: owner, name: name, token: token)
        }
    }

    var storePath: String { folder.appending(path: "relay.sqlite").path }
    var caPath: String { folder.appending(path: "gateway-ca.pem").path }

    /// The name of the device with this token.
    func phone(with token: String) -> String {
        phones.first { $0.token.rawValue == token }?.name ?? "an unknown device"
    }

    /// A user token (JWT, HS256) as the application's own identity provider would issue it.
    func userToken(_ user: String, until expiry: Timestamp) -> String {
        func part(_ json: JSONValue) -> String { Self.base64url(json.utf8) }
        let head: JSONValue = ["alg": "HS256", "typ": "JWT"]
        let claims: JSONValue = ["sub": .string(user), "exp": .integer(expiry.seconds)]
        let signed = "\(part(head)).\(part(claims))"
        let key = SymmetricKey(data: Array(userSecret.utf8))
        let code = HMAC<SHA256>.authenticationCode(for: Array(signed.utf8), using: key)
        return "\(signed).\(Self.base64url(Array(code)))"
    }

    private static func base64url(_ bytes: [UInt8]) -> String {
        Base64.encode(bytes).replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }

    // MARK: Furnishing

    /// Writes container, keys, source and devices into the store, as an operator would.
    func furnish(at now: Timestamp) async throws {
        let store = try RelayStore.open(path: storePath)
        do {
            try await furnish(store, at: now)
            await store.close()
        } catch {
            await store.close()
            throw error
        }
    }

    private func furnish(_ store: RelayStore, at now: Timestamp) async throws {
        let key = try Self.containerKey()
        var settings = ContainerSettings(key: key, topics: [Self.topic])
        settings.credential = ProviderCredential(
            teamID: Self.teamID, keyID: Self.keyID,
            privateKeyPEM: signingKey.pemRepresentation)
        settings.userTokens = UserTokenSettings(sharedSecret: userSecret)
        try await store.save(settings, at: now)
        let verifier = Hexadecimal.encode(SHA256.hash(data: Array(apiToken.utf8)))
        try await store.save(
            AccessKey(
                id: "dev", container: key, kind: .apiToken, verifier: verifier, label: "belfry dev",
                createdAt: now))
        let definition: JSONValue = [
            "name": .string(Self.source), "preset": "belfry",
            "verification": [
                "scheme": "bearer", "secrets": [["secret": .string(sourceToken)]],
            ],
        ]
        guard let name = SourceName(rawValue: Self.source) else {
            throw DevFailure("not a source name: \(Self.source)")
        }
        try await store.save(
            StoredSource(
                container: key, name: name,
                definition: .object(try ChangeSource(json: definition).json), savedAt: now))
        for phone in phones {
            _ = try await store.register(try phone.device(in: key), at: now)
        }
    }

    static func containerKey() throws -> ContainerKey {
        guard let container = ContainerID(rawValue: container) else {
            throw DevFailure("not a container: \(container)")
        }
        return ContainerKey(container: container, environment: .development)
    }
}

extension DevHouse.Phone {
    func device(in container: ContainerKey) throws -> Device {
        guard let id = DeviceID(rawValue: name), let owner = UserID(rawValue: owner) else {
            throw DevFailure("not a device: \(name)")
        }
        return Device(
            id: id, container: container, owner: owner, gatewayEnvironment: .development,
            token: token)
    }
}

/// Why `belfry dev` cannot go on.
struct DevFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
