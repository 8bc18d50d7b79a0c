import ChangeSources
import HTTPTypes
import Logging
import RelayModel
import Storage

/// The routes to which change sources post.
struct ChangeRoutes: Sendable {
    let registry: any ContainerRegistry & SourceRegistry
    let intake: ChangeIntake
    let decoding: WebhookDecoding
    /// The URL of the relay; some sources sign the URL to which they post.
    let publicURL: PublicURL
    let ledger: SourceLedger
    let turnstile: Turnstile
    let logger: Logger
    private let sources: SourceMemory

    init(
        registry: any ContainerRegistry & SourceRegistry, intake: ChangeIntake,
        decoding: WebhookDecoding, publicURL: PublicURL, ledger: SourceLedger, turnstile: Turnstile,
        sources: SourceMemory, logger: Logger
    ) {
        self.sources = sources
        self.registry = registry
        self.intake = intake
        self.decoding = decoding
        self.publicURL = publicURL
        self.ledger = ledger
        self.turnstile = turnstile
        self.logger = logger
    }

    private static let path = "/changes/1/{container}/{environment}/{source}"

    var routes: [RelayRoute] {
        var post = RelayRoute(
            .changes, "POST", Self.path, bodyLimit: .webhook, admit: recognize)
        post.refuse = refuseMethod
        return [post, RelayRoute(open: .changes, "OPTIONS", Self.path, respond: validate)]
    }

    /// Checks, with the head of the request, that the source exists and may have sent it.
    private func recognize(_ request: RelayRequest) async throws -> RelayRoute.Admission {
        let (settings, source) = try await source(of: request)
        let isProven = try await noted(request, source.name, settings.key) {
            try source.recognize(webhook(request))
        }
        // A signature is not verified before the body has arrived. So a request that only claims
        // one is not yet counted, or others could use up the source's rate.
        var admission = RelayRoute.Admission(
            container: settings, key: isProven ? Self.key(of: source) : nil, who: "source"
        ) { request in
            try await post(request, isCounted: isProven)
        }
        admission.noteRefusal = { error in note(error, request, source.name, settings.key) }
        return admission
    }

    /// Returns the key under which the requests of a source are counted.
    private static func key(of source: ChangeSource) -> String { "source/\(source.name)" }

    /// Returns the source in the path, and the settings of its container.
    private func source(
        of request: RelayRequest
    ) async throws -> (ContainerSettings, ChangeSource) {
        let settings = try await registry.settings(in: request)
        let name: SourceName = try request.identifier("source")
        let all = try await registry.sources(of: settings.key)
        guard let stored = all.first(where: { $0.name == name }) else {
            let error = APIError(
                .notFound, "there is no change source \"\(name)\" in \(settings.key)")
            note(error, request, name, settings.key, isKnown: false)
            throw error
        }
        return (settings, try sources.source(stored, among: all))
    }

    /// Verifies the raw bytes, decodes them, and appends the changes; only then it answers 2xx.
    ///
    /// The source is looked up again, because it may have been deleted while the body arrived.
    private func post(_ request: RelayRequest, isCounted: Bool) async throws -> RelayAnswer {
        let (settings, source) = try await source(of: request)
        let results = try await noted(request, source.name, settings.key) {
            let webhook = webhook(request)
            try source.verify(webhook)
            if !isCounted { try turnstile.use(key: Self.key(of: source), of: settings) }
            let (batch, prepared) = try await decoding.decode(
                max(source.decodedBytes(of: webhook.body), LongBodies.weight(of: webhook.body)),
                of: settings.key
            ) { try source.decode(webhook) }
            return try await intake.take(
                batch, prepared: prepared, from: source, of: settings.key, posted: { webhook },
                at: request.receivedAt)
        }
        if let failure = results.failure {
            note(failure, request, source.name, settings.key, isKnown: true)
        } else {
            ledger.noteAccepted(source.name, of: settings.key, results, at: request.receivedAt)
        }
        return results.answer(requiredAnswer: source.preset.requiredAnswer, uuid: request.uuid)
    }

    /// Answers the handshake of CloudEvents' web hooks, in which a sender asks whether it may post
    /// here (HTTP 1.1 Web Hooks for Event Delivery §4).
    ///
    /// A sender is authenticated by its signature, so every origin is allowed. A source of another
    /// preset grants no permission.
    private func validate(_ request: RelayRequest) async throws -> RelayAnswer {
        let (_, source) = try await source(of: request)
        var answer = RelayAnswer(status: 200)
        answer.headers[.allow] = "OPTIONS, POST"
        guard source.preset == .cloudevents, let origin = request.header("WebHook-Request-Origin")
        else { return answer }
        answer.headers[.webHookAllowedOrigin] = origin
        if let rate = request.header("WebHook-Request-Rate") {
            answer.headers[.webHookAllowedRate] = rate
        }
        return answer
    }

    // MARK: What is refused is seen

    /// Records a webhook with a wrong method; some senders use one unless configured otherwise.
    private func refuseMethod(
        _ request: RelayRequest, _ refusal: RefusedMethod
    ) async -> RefusedMethod {
        guard let settings = try? await registry.settings(in: request),
            let name = try? request.identifier("source", as: SourceName.self),
            let all = try? await registry.sources(of: settings.key),
            let stored = all.first(where: { $0.name == name }),
            let source = try? sources.source(stored, among: all)
        else { return refusal }
        var told = refusal
        do {
            _ = try source.decode(webhook(request))
        } catch {
            told.hint = "; \(error.reason)"
        }
        note(ErrorMapping(told).apiError, request, name, settings.key, isKnown: true)
        return told
    }

    private func noted<Outcome>(
        _ request: RelayRequest, _ source: SourceName, _ container: ContainerKey,
        _ body: () async throws -> Outcome
    ) async throws -> Outcome {
        do {
            return try await body()
        } catch {
            note(error, request, source, container)
            throw error
        }
    }

    private func note(
        _ error: any Error, _ request: RelayRequest, _ source: SourceName, _ container: ContainerKey
    ) {
        if error is CancellationError { return }
        note(ErrorMapping(error).apiError, request, source, container, isKnown: true)
    }

    private func note(
        _ error: APIError, _ request: RelayRequest, _ source: SourceName,
        _ container: ContainerKey, isKnown: Bool
    ) {
        let refusal = SourceLedger.Refusal(
            at: request.receivedAt, source: source, address: request.peer?.client.description,
            status: error.httpStatus, reason: error.reason.excerpt, requestID: request.uuid)
        guard
            case .log(let unlogged) = ledger.noteRefused(refusal, of: container, isKnown: isKnown)
        else { return }
        logger.warning(
            "refused a webhook",
            metadata: [
                "container": "\(container)", "source": "\(source)",
                "address": "\(refusal.address ?? "-")",
                "status": .stringConvertible(refusal.status),
                "reason": "\(refusal.reason)", "uuid": "\(refusal.requestID)",
                "unloggedBefore": .stringConvertible(unlogged),
            ])
    }

    private func webhook(_ request: RelayRequest) -> WebhookRequest {
        var webhook = WebhookRequest(
            method: request.method, url: "\(publicURL)\(request.target)",
            body: request.body, receivedAt: request.receivedAt)
        for field in request.headers {
            webhook.headers.append(field.name.canonicalName, field.value)
        }
        return webhook
    }
}

extension StoredSource {
    /// Returns the source in the form that the room ChangeSources uses.
    ///
    /// - Throws: `JSONContractError` if the definition was written by a newer version of Belfry.
    func changeSource() throws(JSONContractError) -> ChangeSource {
        try ChangeSource(json: definition, path: "definition")
    }
}
