import RelayModel
import Storage

/// Additional tokens of the administrative surface, the audit log, and the encryption of secrets.
struct TokenAdministration: AdministrationTable {
    let registry: any ContainerRegistry & AdministrationRegistry
    let identifiers: RandomIdentifiers
    /// The ID of the key that encrypts the store's secrets; `nil` if they are not encrypted.
    let secretsKeyID: String?
    /// The shards of the service; `nil` if the store is the only one.
    let shards: ShardAccess?

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listTokens, respond: list),
            AdministrationRoute(.createToken, respond: create),
            AdministrationRoute(.revokeToken, respond: revoke),
            AdministrationRoute(.audit, respond: audit),
            AdministrationRoute(.secrets, respond: secrets),
        ]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let tokens = try await registry.adminTokens()
        return AdministrationCall.listTokens.answer(tokens.map(AdministrationRows.adminToken.json))
    }

    /// Creates a token; only this answer shows it.
    private func create(_ request: RelayRequest) async throws -> RelayAnswer {
        let secret = identifiers.digits(bytes: 32)
        let token = try AdminToken(
            try AdministrationCall.createToken.body(of: request), id: identifiers.digits(bytes: 8),
            verifier: Secrets.verifier(of: secret), at: request.receivedAt)
        if let container = token.container {
            try refuse(ofOtherShards: container)
            _ = try await registry.settings(of: container)
        }
        try await registry.save(token)
        var object = AdministrationRows.adminToken.json(token)
        object["secret"] = .string(secret)
        return RelayAnswer(status: 201, json: .object(object))
    }

    /// Refuses a token for a container of another shard.
    ///
    /// A token is stored in one shard. Calls about a container are answered in the container's
    /// shard, where this token would be unknown.
    private func refuse(ofOtherShards key: ContainerKey) throws(APIError) {
        guard let shard = shards?.elsewhere().first(where: { $0.keys.contains(key) })?.schema
        else { return }
        throw APIError(
            .badRequest,
            "container: \(key) is in the shard \(shard), where its tokens must be created: name "
                + "that shard (shard=\(shard), or --shard \(shard))")
    }

    private func revoke(_ request: RelayRequest) async throws -> RelayAnswer {
        let id = request.parameters["token"] ?? ""
        guard
            try await registry.revokeAdminToken(id, at: request.receivedAt)
        else { throw APIError(.notFound, "there is no active token \"\(id.secretsBeginning)\"") }
        return RelayAnswer(json: ["id": .string(id), "revoked": true])
    }

    /// Lists audited calls, the newest first, before the parameter `before`, at most `limit`.
    private func audit(_ request: RelayRequest) async throws -> RelayAnswer {
        let before = try request.number("before").map { Int64(clamping: $0) }
        let limit = try request.limit()
        let entries = try await registry.auditEntries(before: before, limit: limit)
        return AdministrationCall.audit.answer(
            entries.map(AdministrationRows.auditEntry.json),
            next: entries.count == limit ? entries.last.map { ("before", .integer($0.id)) } : nil)
    }

    private func secrets(_ request: RelayRequest) async throws -> RelayAnswer {
        var answer: JSONObject = ["encrypted": .bool(secretsKeyID != nil)]
        answer["keyID"] = secretsKeyID.map { .string($0) }
        return RelayAnswer(json: .object(answer))
    }
}

extension AdminToken {
    /// Reads the rights of a new token.
    ///
    /// - Throws: `JSONContractError` at the first member that does not fit.
    init(_ body: JSONReader, id: String, verifier: String, at now: Timestamp) throws {
        let label: String = try body.require("label", try body.string("label"))
        guard (1...Limits.maximumNameBytes).contains(label.utf8.count),
            label.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            throw body.failure(
                "label", "must be 1 to \(Limits.maximumNameBytes) bytes without control characters")
        }
        // Without these members a token may do more, so one that is there and empty is a mistake.
        for name in ["container", "environment", "hours"] where body.object[name] == .null {
            throw body.failure(name, "must not be null; leave it out instead")
        }
        let access: Access = try body.require("access", try body.choice("access"))
        let name: ContainerID? = try body.identifier("container")
        let environment: ContainerEnvironment? = try body.choice("environment")
        guard (name == nil) == (environment == nil) else {
            throw body.failure("environment", "container and environment must be given together")
        }
        let hours = try body.integer("hours")
        if let hours, !(1...876_000).contains(hours) {
            throw body.failure("hours", "must be 1 to 876000")
        }
        var container: ContainerKey?
        if let name, let environment {
            container = ContainerKey(container: name, environment: environment)
        }
        self.init(
            id: id, verifier: verifier, label: label, mayChange: access == .change,
            container: container, createdAt: now,
            endsAt: hours.map { now.advanced(by: .seconds($0 * 3600)) })
    }

    /// The access that a token grants.
    enum Access: String, CaseIterable {
        case read, change
    }
}
