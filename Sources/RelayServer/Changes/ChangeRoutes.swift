import ChangeSources
import HTTPTypes
import RelayModel
import Storage

/// Where change sources post.
struct ChangeRoutes: Sendable {
    let registry: any ContainerRegistry & SourceRegistry
    let intake: ChangeIntake
    /// What sources sign as the place that they post to.
    let publicURL: String
    private let sources = SourceMemory()

    init(registry: any ContainerRegistry & SourceRegistry, intake: ChangeIntake, publicURL: String)
    {
        self.registry = registry
        self.intake = intake
        self.publicURL = publicURL
    }

    var routes: [RelayRoute] {
        [
            RelayRoute(
                .changes, "POST", "/changes/1/{container}/{environment}/{source}",
                bodyLimit: .webhook, admit: recognize)
        ]
    }

    /// Looks whether the source is known, and whether the head of the request can be its own.
    private func recognize(_ request: RelayRequest) async throws -> RelayRoute.Admission {
        let (settings, source) = try await source(of: request)
        try source.recognize(webhook(request))
        return RelayRoute.Admission(
            container: settings, key: "source/\(source.name)", respond: post)
    }

    /// The source that the path names, and the settings of its container.
    private func source(
        of request: RelayRequest
    ) async throws -> (ContainerSettings, ChangeSource) {
        let settings = try await registry.settings(in: request)
        let name: SourceName = try request.identifier("source")
        guard let stored = try await registry.source(name, of: settings.key) else {
            throw APIError(
                .notFound, "there is no change source \"\(name)\" in \(settings.key)")
        }
        return (settings, try sources.source(stored))
    }

    /// Verifies the raw bytes, decodes, appends, and only then answers 2xx.
    ///
    /// The source is looked up again: it may have been deleted while the body came.
    private func post(_ request: RelayRequest) async throws -> RelayAnswer {
        let (settings, source) = try await source(of: request)
        let webhook = webhook(request)
        try source.verify(webhook)
        let batch = try source.decode(webhook)
        let results = try await intake.take(
            batch, from: source, of: settings.key, posted: webhook, at: request.receivedAt)
        return results.answer(requiredAnswer: source.preset.requiredAnswer, uuid: request.uuid)
    }

    private func webhook(_ request: RelayRequest) -> WebhookRequest {
        var webhook = WebhookRequest(
            method: request.method, url: publicURL + request.target,
            body: request.body, receivedAt: request.receivedAt)
        for field in request.headers {
            webhook.headers.append(field.name.canonicalName, field.value)
        }
        return webhook
    }
}

extension StoredSource {
    /// The source as the decoding room knows it.
    ///
    /// - Throws: `JSONContractError` if the definition was written by a version that knew more.
    func changeSource() throws(JSONContractError) -> ChangeSource {
        try ChangeSource(json: definition, path: "definition")
    }
}
