import ChangeSources
import HTTPTypes
import RelayModel
import Storage

/// Sends a change as if the source had posted it, to try out what it fires.
struct SendAdministration: AdministrationTable {
    let registry: any ContainerRegistry & SourceRegistry
    let intake: ChangeIntake
    let decoding: WebhookDecoding

    /// Header fields that belong to the call and not to the change.
    private static let ownFields: Set<String> = [
        "authorization", "cookie", "x-belfry-console", "host", "origin", "referer",
    ]

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.sendChange, bodyLimit: .webhook, respond: send)]
    }

    /// Takes the body as a webhook of the source.
    ///
    /// The caller's token replaces the verification of the webhook; everything after that is the
    /// same.
    private func send(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: SourceName = try request.identifier("source")
        guard let stored = try await registry.source(name, of: container) else {
            throw APIError(.notFound, "there is no change source \"\(name)\"")
        }
        let source = try stored.changeSource()
        var webhook = WebhookRequest(body: request.body, receivedAt: request.receivedAt)
        for field in request.headers where !Self.ownFields.contains(field.name.canonicalName) {
            webhook.headers.append(field.name.canonicalName, field.value)
        }
        let posted = webhook
        let (batch, prepared) = try await decoding.decode(
            source.decodedBytes(of: posted.body), of: container
        ) { try source.decode(posted) }
        let results = try await intake.take(
            batch, prepared: prepared, from: source, of: container, at: request.receivedAt)
        return results.answer(requiredAnswer: nil, uuid: request.uuid)
    }
}
