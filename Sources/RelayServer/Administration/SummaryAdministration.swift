import Delivery
import RelayModel
import Storage

/// The call that shows all settings of a container in one answer.
struct SummaryAdministration: AdministrationTable {
    let registry: any ContainerRegistry & AccessKeyRegistry & SourceRegistry
    let shadow: any Shadow
    let containers: ContainerAdministration
    let sources: SourceAdministration
    /// The push gateway's answers to each container.
    let answers: @Sendable () -> [ContainerKey: GatewayAnswers]
    let retention: Retention

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.summarizeContainer, respond: show)]
    }

    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let key = settings.key
        let answers = answers()[key]
        var shown = try await containers.shown(settings)
        let halts = shown["halts"]
        let use = shown["use"]
        for name in ["halts", "use"] { shown[name] = nil }
        return RelayAnswer(json: [
            "settings": .object(shown), "credential": settings.credentialJSON,
            "canSend": .string(SendingState(settings, answers).rawValue),
            "gateway": .object((answers ?? GatewayAnswers()).json),
            "keys": .array(
                try await registry.accessKeys(of: key)
                    .map { .object(AdministrationRows.accessKey.json($0)) }),
            "sources": .array(
                try await registry.sources(of: key).map { .object(try sources.shownObject($0)) }),
            "halts": halts ?? [], "use": use ?? [:],
            "schema": .object(try await shadow.schema(of: key).json),
            "retention": retention.json,
        ])
    }
}
