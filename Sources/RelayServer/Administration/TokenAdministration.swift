import RelayModel
import Storage

/// Further tokens of the administrative surface, the audit log, and how secrets are kept.
struct TokenAdministration: AdministrationTable {
    let registry: any Registry
    let identifiers: RandomIdentifiers
    /// The ID of the key that encrypts the store's secrets; `nil` if they lie there as they are.
    let secretsKeyID: String?

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute("GET", "/admin/1/tokens", respond: list),
            AdministrationRoute("POST", "/admin/1/tokens", respond: create),
            AdministrationRoute("DELETE", "/admin/1/tokens/{token}", respond: revoke),
            AdministrationRoute("GET", "/admin/1/audit", respond: audit),
            AdministrationRoute("GET", "/admin/1/secrets", respond: secrets),
        ]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let tokens = try await registry.adminTokens()
        return RelayAnswer(json: ["tokens": .array(tokens.map { .object($0.shownJSON) })])
    }

    /// Creates a token; it is shown in this answer and never again.
    private func create(_ request: RelayRequest) async throws -> RelayAnswer {
        let secret = identifiers.digits(bytes: 32)
        let token = try AdminToken(
            try request.jsonBody(), id: identifiers.digits(bytes: 8),
            verifier: Secrets.verifier(of: secret), at: request.receivedAt)
        if let container = token.container {
            _ = try await registry.settings(of: container)
        }
        try await registry.save(token)
        var object = token.shownJSON
        object["secret"] = .string(secret)
        return RelayAnswer(status: 201, json: .object(object))
    }

    private func revoke(_ request: RelayRequest) async throws -> RelayAnswer {
        let id = request.parameters["token"] ?? ""
        guard
            try await registry.revokeAdminToken(id, at: request.receivedAt)
        else { throw APIError(.notFound, "there is no live token \"\(id.shortened)\"") }
        return RelayAnswer(json: ["id": .string(id), "revoked": true])
    }

    /// Calls, the newest first, before the parameter `before`, at most `limit`.
    private func audit(_ request: RelayRequest) async throws -> RelayAnswer {
        let before = try request.number("before").map { Int64(clamping: $0) }
        let limit = try request.limit()
        let entries = try await registry.auditEntries(before: before, limit: limit)
        var answer: JSONObject = ["entries": .array(entries.map { .object($0.shownJSON) })]
        if entries.count == limit { answer["before"] = entries.last.map { .integer($0.id) } }
        return RelayAnswer(json: .object(answer))
    }

    private func secrets(_ request: RelayRequest) async throws -> RelayAnswer {
        var answer: JSONObject = ["encrypted": .bool(secretsKeyID != nil)]
        answer["keyID"] = secretsKeyID.map { .string($0) }
        return RelayAnswer(json: .object(answer))
    }
}

extension AdminToken {
    /// Reads what a new token may do.
    ///
    /// - Throws: `JSONContractError` at the first member that does not fit.
    init(_ body: JSONReader, id: String, verifier: String, at now: Timestamp) throws {
        try body.allowOnly(["label", "access", "container", "environment", "hours"])
        let label: String = try body.require("label", try body.string("label"))
        guard (1...Limits.maximumNameBytes).contains(label.utf8.count),
            label.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            throw body.failure(
                "label", "must be 1 to \(Limits.maximumNameBytes) bytes without control characters")
        }
        let access: Access = try body.require("access", try body.choice("access"))
        let name: ContainerID? = try body.identifier("container")
        let environment: ContainerEnvironment? = try body.choice("environment")
        guard (name == nil) == (environment == nil) else {
            throw body.failure("environment", "container and environment go together")
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

    /// What a token may do.
    enum Access: String, CaseIterable {
        case read, change
    }

    /// The token without what verifies it.
    var shownJSON: JSONObject {
        var object: JSONObject = [
            "id": .string(id), "label": .string(label),
            "access": .string((mayChange ? Access.change : Access.read).rawValue),
            "createdAt": .string(createdAt.iso8601),
        ]
        object["container"] = container.map { .string($0.container.rawValue) }
        object["environment"] = container.map { .string($0.environment.rawValue) }
        object["endsAt"] = endsAt.map { .string($0.iso8601) }
        object["revokedAt"] = revokedAt.map { .string($0.iso8601) }
        return object
    }
}

extension AuditEntry {
    var shownJSON: JSONObject {
        var object: JSONObject = [
            "id": .integer(id), "at": .string(at.iso8601), "caller": .string(caller),
            "method": .string(method), "path": .string(path),
        ]
        object["status"] = status.map { .integer(Int64($0)) }
        object["code"] = code.map { .string($0) }
        return object
    }
}
