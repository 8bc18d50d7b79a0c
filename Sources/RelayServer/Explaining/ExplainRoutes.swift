import RelayModel
import Storage

/// `subscriptions/explain`: shows users why a change fired their subscriptions, or did not.
struct ExplainRoutes: Sendable {
    let clients: ClientAdmission
    let service: ExplainService
    /// Admits questions: they take places of queries.
    let queries: QueryAdmission

    var routes: [RelayRoute] {
        [
            clients.route(
                "POST", RelayRoute.database + "/subscriptions/explain", patience: .watched,
                effect: .reads, respond: explain)
        ]
    }

    private func explain(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let user = try admitted.user()
        let question = try ExplainQuestion(
            request.jsonBody(), of: user, in: admitted.database)
        let settings = admitted.settings
        let answer = try await queries.run(
            .user(user), of: settings.key, places: settings.quotas.limits[.queries]
        ) { allowance in
            try await service.answer(
                question, of: settings, for: .user(user), within: allowance,
                at: request.receivedAt)
        }
        return RelayAnswer(json: answer.json)
    }
}

/// The operator's call to explain, for any user.
struct ExplainAdministration: AdministrationTable {
    let registry: any ContainerRegistry & DeviceRegistry
    let service: ExplainService
    let queries: QueryAdmission

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.explain, patience: .watched, respond: explain)]
    }

    private func explain(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        var question = try ExplainQuestion(request)
        // A question about what a source sent can be answered without a user's subscriptions.
        if question.user == nil, question.delivery == nil,
            !question.namesWhatWasSent || question.device != nil
        {
            question.user = try await user(of: question, in: settings.key)
        }
        let asked = question
        let answer = try await queries.run(.server, of: settings.key) { allowance in
            try await service.answer(
                asked, of: settings, for: .administrator, within: allowance,
                at: request.receivedAt)
        }
        return RelayAnswer(json: answer.json)
    }

    /// Returns the user of a question that names none: the only user who has the device.
    private func user(
        of question: ExplainQuestion, in container: ContainerKey
    ) async throws -> UserID {
        guard let device = question.device else {
            throw APIError(.badRequest, "user: name the user whose subscription or device is meant")
        }
        let holders = try await registry.holders(of: device, in: container, limit: 2)
        guard let user = holders.first, holders.count == 1 else {
            throw APIError(
                .badRequest,
                holders.isEmpty
                    ? "user: no user has a device \"\(device)\" now; name the user who had it"
                    : "user: several users have a device \"\(device)\"; name the user")
        }
        return user
    }
}

extension AdministrationCall {
    package static let explain = AdministrationCall(
        "GET", "\(container)/explain",
        "Explain why changes fired a user's subscriptions or did not, and what became of the "
            + "pushes. Ask with a change and a subscription, a user or a device; with a "
            + "delivery; or with a subscription alone.",
        query: [
            .maybe("position", .count), .maybe("recordType", .name), .maybe("recordName", .name),
            .maybe("source", .name), .maybe("webhookID", .name),
            .maybe("subscription", .name), .user, .maybe("device", .name),
            .maybe("delivery", .uuid),
            .maybe("database", .words(of: DatabaseScope.self)),
            .maybe("limit", .number(from: 1, to: Int64(ExplainQuestion.mostChanges))),
        ],
        answers: [
            Answer(200, .component("Explanations")),
            Answer(429, .component("Error"), "Too many questions are being answered."),
        ])
}
