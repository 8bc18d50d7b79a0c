import RelayModel
import Storage

/// `subscriptions/rehearse`: shows users what a subscription would have done, before they save it.
struct RehearseRoutes: Sendable {
    let clients: ClientAdmission
    let service: RehearseService
    /// Admits rehearsals: they take places of queries, and are limited further.
    let queries: QueryAdmission

    var routes: [RelayRoute] {
        [
            clients.route(
                "POST", RelayRoute.database + "/subscriptions/rehearse", patience: .watched,
                effect: .reads, respond: rehearse),
            clients.route(
                "POST", RelayRoute.database + "/subscriptions/rehearse/changes",
                bodyLimit: .lines, patience: .watched, effect: .reads, respond: rehearseChanges),
        ]
    }

    private func rehearseChanges(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try SubscriptionOwner(admitted)
        let settings = admitted.settings
        let answer = try await queries.rehearse(
            .user(owner.user), of: settings.key, places: settings.quotas.limits[.queries],
            isUpload: true
        ) { allowance in
            try await RehearsalUpload(request, besides: SubscriptionRoutes.idleMembers)
                .answer(by: service, of: settings, within: allowance) { _ in owner }
        }
        return RelayAnswer(json: answer.json)
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

/// The operator's calls to rehearse as any user; what that user may not read is not looked at.
struct RehearseAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let service: RehearseService
    let queries: QueryAdmission

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.rehearse, patience: .watched, respond: rehearse),
            AdministrationRoute(
                .rehearseChanges, bodyLimit: .lines, patience: .watched,
                respond: rehearseChanges),
        ]
    }

    private func rehearseChanges(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let answer = try await queries.rehearse(.server, of: settings.key, isUpload: true) {
            allowance in
            try await RehearsalUpload(request, besides: ["user", "database"])
                .answer(by: service, of: settings, within: allowance) { body in
                    try Self.owner(body, in: settings.key)
                }
        }
        return RelayAnswer(json: answer.json)
    }

    /// Returns the user as whom the operator rehearses.
    private static func owner(
        _ body: JSONReader, in container: ContainerKey
    ) throws -> SubscriptionOwner {
        SubscriptionOwner(
            container: container, database: try body.choice("database") ?? .public,
            user: try body.require("user", try body.identifier("user")))
    }

    private func rehearse(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let body = try AdministrationCall.rehearse.body(of: request)
        let owner = try Self.owner(body, in: settings.key)
        let question = try RehearseQuestion(body)
        let answer = try await queries.rehearse(.server, of: settings.key) { allowance in
            try await service.answer(
                question, of: settings, for: owner, within: allowance, at: request.receivedAt)
        }
        return RelayAnswer(json: answer.json)
    }
}

/// Uploaded changes, one on each line, after a first line with the request.
private struct RehearsalUpload {
    private let lines: UploadedLines
    private let members: [String]
    private let receivedAt: Timestamp

    init(_ request: RelayRequest, besides members: [String]) throws(APIError) {
        guard let lines = request.upload else {
            preconditionFailure("the route of an upload must read its body in parts")
        }
        self.lines = lines
        self.members = RehearseQuestion.membersOfUpload + members
        receivedAt = request.receivedAt
    }

    func answer(
        by service: RehearseService, of settings: ContainerSettings,
        within allowance: QueryAllowance, for owner: (JSONReader) throws -> SubscriptionOwner
    ) async throws -> RehearseService.Answer {
        try await service.answer(by: lines, of: settings, within: allowance, at: receivedAt) {
            line in
            let body = try question(line)
            return (try RehearseQuestion(body), try owner(body))
        }
    }

    /// Parses the first line, which a caller that sends only changes has forgotten.
    private func question(_ line: ArraySlice<UInt8>) throws -> JSONReader {
        do {
            let body = try JSONReader(try JSONValue(parsing: Array(line)))
            try body.allowOnly(members)
            return body
        } catch {
            let refusal = ErrorMapping(error).apiError
            throw APIError(
                refusal.code, "the first line, which describes the rehearsal: \(refusal.reason)")
        }
    }
}

extension AdministrationCall {
    package static let rehearseChanges = AdministrationCall(
        "POST", "\(container)/rehearse/changes",
        "Rehearse with the changes in the body, application/x-ndjson of any length. The "
            + "first line says what is rehearsed (subscription, subscriptionID, user, database, "
            + "examples). Every other line is a change as the preset belfry takes it, the oldest "
            + "first.",
        answers: [
            Answer(200, .component("Rehearsal")),
            Answer(429, .component("Error"), "Too many rehearsals are under way."),
        ],
        effect: .reads)

    package static let rehearse = AdministrationCall(
        "POST", "\(container)/rehearse",
        "Show what a user's subscription would have done: a draft, a saved one, or what a draft "
            + "would change about a saved one. Nothing is saved or sent.",
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
