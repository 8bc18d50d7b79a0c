import Crypto
import RelayModel
import Storage

/// Access keys: list, create, revoke.
struct KeyAdministration: AdministrationTable {
    let registry: any ContainerRegistry & AccessKeyRegistry
    let identifiers: RandomIdentifiers
    /// Called with keys that are no longer valid.
    let revoked: @Sendable (Revocation) async -> Void
    /// The queue in which changes of one container's keys, sources and settings wait for each
    /// other, so that keys that are created at the same time cannot exceed the limit.
    let line: ReaderLine

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listKeys, respond: list),
            AdministrationRoute(.createKey, respond: create),
            AdministrationRoute(.revokeKey, respond: revoke),
        ]
    }

    /// The maximum number of valid keys of one container; a call about one key loads all of them.
    static let mostKeys = 1000

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let keys = try await registry.accessKeys(of: try await registry.key(in: request))
        return AdministrationCall.listKeys.answer(keys.map(AdministrationRows.accessKey.json))
    }

    /// Creates a key; only this answer shows its secret.
    private func create(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let body = try AdministrationCall.createKey.body(of: request)
        let kind: AccessKey.Kind = try body.require("kind", try body.choice("kind"))
        let label = try body.string("label") ?? kind.rawValue
        guard label.utf8.count <= Limits.maximumNameBytes else {
            throw body.failure("label", "must be at most \(Limits.maximumNameBytes) bytes")
        }
        let made =
            try kind == .serverToServer
            ? serverToServerKey(
                body, container: container, at: request.receivedAt)
            : secretKey(
                kind, body, container, at: request.receivedAt)
        var key = made.key
        key.label = label
        let saved = key
        try await line.turn(of: container) { try await save(saved, of: container) }
        var object = AdministrationRows.accessKey.json(key)
        object["secret"] = made.secret.map { .string($0) }
        return RelayAnswer(status: 201, json: .object(object))
    }

    /// Saves a new key if the container has room for it.
    private func save(_ key: AccessKey, of container: ContainerKey) async throws {
        let keys = try await registry.accessKeys(of: container)
        guard !keys.contains(where: { $0.id == key.id }) else {
            throw APIError(.exists, "a key with the ID \"\(key.id)\" already exists")
        }
        guard keys.count(where: { $0.revokedAt == nil }) < Self.mostKeys else {
            throw APIError(
                .quotaExceeded,
                "a container has at most \(Self.mostKeys) access keys: revoke one first")
        }
        try await registry.save(key)
    }

    private func revoke(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let id = request.parameters["key"] ?? ""
        guard
            try await registry.revokeAccessKey(
                id, of: container, at: request.receivedAt)
        else { throw APIError(.notFound, "there is no active key \"\(id.secretsBeginning)\"") }
        await revoked(.key(id, container))
        return RelayAnswer(json: ["id": .string(id), "revoked": true])
    }

    // MARK: Making keys

    private func secretKey(
        _ kind: AccessKey.Kind, _ body: JSONReader, _ container: ContainerKey, at now: Timestamp
    ) throws(JSONContractError) -> (key: AccessKey, secret: String?) {
        for name in ["publicKey", "id"] where body.value(name) != nil {
            throw body.failure(name, "is allowed only for kind \"serverToServer\"")
        }
        let secret = identifiers.digits(bytes: 32)
        let key = AccessKey(
            id: identifiers.digits(bytes: 8), container: container, kind: kind,
            verifier: Secrets.verifier(of: secret), label: "", createdAt: now)
        return (key, secret)
    }

    /// Creates a server-to-server key.
    ///
    /// CloudKit's key IDs have 64 digits; a key without an ID gets the SHA-256 hash of its public
    /// key.
    private func serverToServerKey(
        _ body: JSONReader, container: ContainerKey, at now: Timestamp
    ) throws(JSONContractError) -> (key: AccessKey, secret: String?) {
        let pem = try body.require("publicKey", try body.string("publicKey"))
        guard let publicKey = try? P256.Signing.PublicKey(pemRepresentation: pem) else {
            throw body.failure(
                "publicKey", "must be an ECDSA P-256 public key in PEM form (BEGIN PUBLIC KEY)")
        }
        let made = Hexadecimal.encode(SHA256.hash(data: publicKey.derRepresentation))
        let id = try body.string("id") ?? made
        guard (1...128).contains(id.utf8.count), ContainerID(rawValue: id) != nil else {
            throw body.failure("id", "must be 1 to 128 letters and digits")
        }
        let key = AccessKey(
            id: id, container: container, kind: .serverToServer,
            verifier: publicKey.pemRepresentation, label: "", createdAt: now)
        return (key, nil)
    }
}
