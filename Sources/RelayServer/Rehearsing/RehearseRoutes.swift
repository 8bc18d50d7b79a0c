import RelayModel
import Storage

/// `subscriptions/rehearse`: users ask what a subscription would have done, before they save it.
struct RehearseRoutes: Sendable {
    let clients: ClientAdmission
    let service: RehearseService
    /// Lets rehearsals in: they have their places among the queries, and fewer of their own.
    let queries: QueryAdmission

    var routes: [RelayRoute] {
        [
            clients.route(
                "POST", RelayRoute.database + "/subscriptions/rehearse", patience: .watched,
                effect: .reads, respond: rehearse)
        ]
    }

    private func rehearse(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try SubscriptionOwner(admitted)
        let body = try request.jsonBody()
        try body.allowOnly(RehearseQuestion.members + SubscriptionRoutes.idleMembers)
        let question = try RehearseQuestion(body)
        let settings = admitted.settings
        let answer = try await queries.rehearse(
            .user(owner.user), of: settings.key, places: settings.quotas.limits[.queries]
        ) { allowance in
            try await service.answer(
                question, of: settings, for: owner, within: allowance, at: request.receivedAt)
        }
        return RelayAnswer(json: answer.json)
    }
}

/// The same for the operator, as any user: what that user may not read is not looked at either.
struct RehearseAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let service: RehearseService
    let queries: QueryAdmission

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.rehearse, patience: .watched, respond: rehearse)]
    }

    private func rehearse(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let body = try AdministrationCall.rehearse.body(of: request)
        let owner = SubscriptionOwner(
            container: settings.key, database: try body.choice("database") ?? .public,
            user: try body.require("user", try body.identifier("user")))
        let question = try RehearseQuestion(body)
        let answer = try await queries.rehearse(.server, of: settings.key) { allowance in
            try await service.answer(
                question, of: settings, for: owner, within: allowance, at: request.receivedAt)
        }
        return RelayAnswer(json: answer.json)
    }
}

extension AdministrationCall {
    package static let rehearse = AdministrationCall(
        "POST", "\(container)/rehearse",
        "Tells what a user's subscription would have done: a draft, a saved one, or what a draft "
            + "would change of a saved one. Nothing is saved or sent.",
        body: .members(
            [
                .always("user", .name), .maybe("database", .words(of: DatabaseScope.self)),
                .maybe("subscription", .component("Subscription")),
                .maybe("subscriptionID", .name),
                .maybe(
                    "changes", .number(from: 1, to: Int64(RehearseQuestion.mostChanges))),
                .maybe("since", .text), .maybe("until", .text),
                .maybe("after", .text), .maybe("before", .text),
                .maybe(
                    "examples", .number(from: 0, to: Int64(RehearseQuestion.mostExamples))),
            ],
            example: [
                "user": "alice",
                "subscription": [
                    "subscriptionType": "query",
                    "query": ["recordType": "Artwork", "predicate": "price < 100"],
                    "firesOn": ["create"], "notificationInfo": ["alertBody": "Cheap"],
                ],
            ]),
        answers: [
            Answer(200, .component("Rehearsal")),
            Answer(429, .component("Error"), "Too many rehearsals are under way."),
        ],
        effect: .reads)
}
