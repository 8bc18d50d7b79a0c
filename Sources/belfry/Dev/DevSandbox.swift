import ChangeSources
import Crypto
import FoundationEssentials
import GatewaySimulator
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite

/// The invented environment of `belfry dev`: a container with keys, users with devices, a change
/// source, and the secrets of all these.
struct DevSandbox: Sendable {
    static let container = "iCloud.com.example.Art"
    static let topic = "com.example.Art"
    static let teamID = "TEAM123456"
    static let keyID = "KEY1234567"
    static let source = "database"

    let folder: URL
    let secrets: DevSecrets
    let signingKey: P256.Signing.PrivateKey
    /// The devices of a seed.
    let seeded: [DevSeed.SeedDevice]
    /// Whether the folder already had a container at the start.
    let isKept: Bool

    /// Loads the names and secrets from the folder, or makes new ones.
    init(folder: URL, seeded: [DevSeed.SeedDevice] = [], world: World) throws {
        self.folder = folder
        self.seeded = seeded
        isKept = FileManager.default.fileExists(
            atPath: folder.appending(path: "relay.sqlite").path)
        secrets = try DevSecrets.kept(in: folder, world: world)
        signingKey = try P256.Signing.PrivateKey(pemRepresentation: secrets.signingKey)
    }

    var folderPath: String { folder.path }
    var storePath: String { folder.appending(path: "relay.sqlite").path }
    /// The absolute path of the store, for commands that run in another folder.
    var wholeStorePath: String {
        storePath.hasPrefix("/")
            ? storePath : "\(FileManager.default.currentDirectoryPath)/\(storePath)"
    }
    var caPath: String { folder.appending(path: "gateway-ca.pem").path }

    /// Returns the URL to which changes are posted.
    func sourceURL(port: Int) -> String {
        "http://127.0.0.1:\(port)/changes/1/\(Self.container)/development/\(Self.source)"
    }

    /// Returns the name of the device with this token.
    func phone(with token: String) -> String {
        secrets.phones.first { $0.token == token }?.name
            ?? seeded.first { self.token(of: $0) == token }?.id.rawValue ?? "an unknown device"
    }

    /// Returns the token of a seeded device, which is the same in every run with one folder.
    func token(of device: DevSeed.SeedDevice) -> String {
        let named = secrets.phones.first {
            $0.name == device.id.rawValue && $0.owner == device.user.rawValue
        }
        if let named { return named.token }
        let text = "\(secrets.sourceToken)/\(device.user)/\(device.id)"
        return Hexadecimal.encode(SHA256.hash(data: Array(text.utf8)))
    }

    /// Returns a user token (JWT, HS256) like those that the application's own identity provider
    /// would issue.
    func userToken(_ user: String, until expiry: Timestamp) -> String {
        let head: JSONValue = ["alg": "HS256", "typ": "JWT"]
        let claims: JSONValue = ["sub": .string(user), "exp": .integer(expiry.seconds)]
        let key = SymmetricKey(data: Array(secrets.userSecret.utf8))
        return CompactJWS.text(header: head, payload: claims) { bytes in
            Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
        }
    }

    // MARK: Furnishing

    /// Writes the container, keys, source and devices into the store, as an operator would.
    ///
    /// If the container already has these keys, nothing is written, so changes in a kept folder
    /// persist. If the keys were lost, new ones replace them.
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
        let verifier = Hexadecimal.encode(SHA256.hash(data: Array(secrets.apiToken.utf8)))
        let former = try await store.container(key)
        if former != nil {
            let keys = try await store.accessKeys(of: key)
            if keys.contains(where: { $0.id == Self.keyName && $0.verifier == verifier }) { return }
        }
        var settings = former ?? ContainerSettings(key: key, topics: [Self.topic])
        settings.credential = ProviderCredential(
            teamID: Self.teamID, keyID: Self.keyID,
            privateKeyPEM: signingKey.pemRepresentation)
        settings.userTokens = UserTokenSettings(sharedSecret: secrets.userSecret)
        try await store.save(settings, at: now)
        try await store.save(
            AccessKey(
                id: Self.keyName, container: key, kind: .apiToken, verifier: verifier,
                label: "belfry dev", createdAt: now))
        let definition: JSONValue = [
            "name": .string(Self.source), "preset": "belfry",
            "verification": [
                "scheme": "bearer", "secrets": [["secret": .string(secrets.sourceToken)]],
            ],
        ]
        guard let name = SourceName(rawValue: Self.source) else {
            throw DevFailure("not a source name: \(Self.source)")
        }
        try await store.save(
            StoredSource(
                container: key, name: name,
                definition: .object(try ChangeSource(json: definition).json), savedAt: now))
        // The record type is kept, so that a page that shows its records can list the existing
        // ones.
        if let artwork = RecordType(rawValue: Self.recordType) {
            try await store.extendSchema(
                of: key, with: [RecordTypeDefinition(artwork, isInferred: true)])
        }
        for phone in secrets.phones {
            _ = try await store.register(try phone.device(in: key), at: now)
        }
    }

    /// The ID of the API token.
    private static let keyName = "dev"

    /// The record type of the sample records.
    static let recordType = "Artwork"

    static func containerKey() throws -> ContainerKey {
        guard let container = ContainerID(rawValue: container) else {
            throw DevFailure("not a container: \(container)")
        }
        return ContainerKey(container: container, environment: .development)
    }
}

extension DevSecrets.Phone {
    func device(in container: ContainerKey) throws -> Device {
        guard let id = DeviceID(rawValue: name), let owner = UserID(rawValue: owner),
            let token = DeviceToken(rawValue: token)
        else {
            throw DevFailure("not a device: \(name)")
        }
        return Device(
            id: id, container: container, owner: owner, gatewayEnvironment: .development,
            token: token)
    }
}

/// The reason why `belfry dev` cannot continue.
struct DevFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
