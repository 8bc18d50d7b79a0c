import ChangeSources
import RelayModel
import Storage

/// Change sources: list, show, set, delete.
struct SourceAdministration: AdministrationTable {
    let registry: any ContainerRegistry & SourceRegistry
    /// How sources reach the relay.
    let publicURL: String
    /// Returns `count` unpredictable bytes.
    let randomBytes: @Sendable (Int) -> [UInt8]

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listSources, respond: list),
            AdministrationRoute(.showSource, respond: show),
            AdministrationRoute(.setSource, respond: set),
            AdministrationRoute(.deleteSource, respond: delete),
        ]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let sources = try await registry.sources(of: try await registry.key(in: request))
        return AdministrationCall.listSources.answer(try sources.map(shownObject))
    }

    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard let stored = try await registry.source(name, of: container) else {
            throw unknown(name)
        }
        return RelayAnswer(json: try shown(stored))
    }

    /// Saves a source, new or not.
    ///
    /// Where the body names no secret, one is made and shown in this answer and never again.
    private func set(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard !name.rawValue.hasPrefix("_") else {
            throw APIError(
                .badRequest, "source: names that begin with an underscore are the relay's own")
        }
        var definition = try request.jsonBody().object
        if let stated = definition["name"], stated != .string(name.rawValue) {
            throw APIError(.badRequest, "name: must be \"\(name)\", as in the path")
        }
        definition["name"] = .string(name.rawValue)
        let secret = completeSecret(&definition)
        let source = try ChangeSource(json: .object(definition))
        let isNew = try await registry.source(name, of: container) == nil
        let stored = StoredSource(
            container: container, name: name, definition: .object(source.json),
            savedAt: request.receivedAt)
        try await registry.save(stored)
        var answer = try shownObject(stored)
        answer["secret"] = secret.map { .string($0) }
        return RelayAnswer(status: isNew ? 201 : 200, json: .object(answer))
    }

    private func delete(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard try await registry.deleteSource(name, of: container) else {
            throw unknown(name)
        }
        return RelayAnswer(json: ["name": .string(name.rawValue), "deleted": true])
    }

    /// Makes up a secret where the definition has none and its scheme needs one: Standard Webhooks
    /// unless it names another scheme.
    private func completeSecret(_ definition: inout JSONObject) -> String? {
        var verification: JSONObject
        switch definition["verification"] {
        case nil, .null: verification = ["scheme": "standardWebhooks"]
        case .object(let given): verification = given
        default: return nil
        }
        guard verification["secrets"] == nil, let scheme = verification["scheme"],
            scheme != "none"
        else { return nil }
        let bytes = randomBytes(32)
        let secret =
            scheme == "standardWebhooks"
            ? "whsec_" + Base64.encode(bytes) : Hexadecimal.encode(bytes)
        verification["secrets"] = [["secret": .string(secret)]]
        definition["verification"] = .object(verification)
        return secret
    }

    private func shown(_ stored: StoredSource) throws -> JSONValue {
        .object(try shownObject(stored))
    }

    /// The definition without secrets, and where to post.
    private func shownObject(_ stored: StoredSource) throws -> JSONObject {
        var object = try stored.changeSource().shownJSON
        let key = stored.container
        object["url"] = .string(
            "\(publicURL)/changes/1/\(key.container)/\(key.environment.rawValue)/"
                + stored.name.rawValue)
        object["savedAt"] = .string(stored.savedAt.iso8601)
        return object
    }

    private func unknown(_ name: SourceName) -> APIError {
        APIError(.notFound, "there is no change source \"\(name)\"")
    }
}
