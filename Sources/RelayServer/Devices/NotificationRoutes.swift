import RelayModel
import Storage

/// The history of a user's notifications.
///
/// It replaces `CKFetchNotificationChangesOperation` and `CKMarkNotificationsReadOperation`, so
/// that a missed push is never lost. Under `/device/1/…` it is that of the container, as in those
/// operations; under `/database/1/…` it is that of the subscriptions in one database.
struct NotificationRoutes: Sendable {
    let clients: ClientAdmission
    let inboxes: any InboxRegistry
    /// The identity of the store, which tokens contain.
    let store: UUIDBytes
    /// The queue for calls that list much.
    let lists: ReaderLine
    /// Writes answers, which may be long.
    let answers: LongAnswers
    let limits: RequestLimits

    var routes: [RelayRoute] {
        let places = [
            "/device/1/{container}/{environment}",
            "/database/1/{container}/{environment}/{database}",
        ]
        return places.map { "\($0)/notifications" }.flatMap { prefix in
            [
                clients.route("GET", "\(prefix)/list", respond: list),
                clients.route("POST", "\(prefix)/list", effect: .reads, respond: list),
                clients.route("POST", "\(prefix)/markRead", respond: markRead),
            ]
        }
    }

    // MARK: list

    private func list(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try Self.owner(admitted)
        let page = try NotificationListing(request)
        // Without a database in the path, the inbox is that of the container. A server key's own
        // identity subscribes only in the public database, so its container inbox is the same.
        let database = request.parameters["database"].map { _ in admitted.database }
        var wanted = InboxRequest(
            owner: owner, database: database, limit: page.limit, device: page.device)
        wanted.after =
            try page.token.map {
                try NotificationToken($0, owner: owner, store: store).sequence
            } ?? 0
        return try await lists.turn(of: owner.container, by: admitted.party) { [wanted] in
            try await answer(wanted)
        }
    }

    /// Returns a page of an inbox.
    private func answer(_ wanted: InboxRequest) async throws -> RelayAnswer {
        let reading = try await inboxes.notifications(wanted)
        guard case .page(let notifications, let next, let isComplete) = reading else {
            throw APIError.tokenExpired(
                "notifications after it are no longer kept; start again without a syncToken")
        }
        let token = NotificationToken(sequence: next).text(owner: wanted.owner, store: store)
        return await answers.answer([
            "notifications": .array(notifications.map(\.json)), "syncToken": .string(token),
            "moreComing": .bool(!isComplete),
        ])
    }

    // MARK: markRead

    private func markRead(
        _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let owner = try Self.owner(admitted)
        let body = try request.jsonBody()
        try body.allowOnly(["notificationIDs"])
        let texts = try body.require("notificationIDs", try body.strings("notificationIDs"))
        try limits.check(texts.count, of: "notificationIDs")
        let ids = texts.map { UUIDBytes($0) }
        let known = try await inboxes.markNotificationsRead(
            ids.compactMap(\.self), of: owner, at: request.receivedAt)
        let entries = zip(texts, ids).map { text, id -> JSONValue in
            if let id, known.contains(id) {
                return ["notificationID": .string(id.description), "isRead": true]
            }
            let error = APIError(.notFound, "the inbox has no such notification")
            return error.entry(
                "notificationID", .string(text.shortened), uuid: request.uuid)
        }
        return RelayAnswer(json: ["notifications": .array(entries)])
    }

    /// Returns the owner of the inbox: the caller, and never another user.
    private static func owner(_ admitted: AdmittedCaller) throws -> InboxOwner {
        let user = try admitted.user()
        guard admitted.settings.keepsInbox else {
            throw APIError(
                .notFound,
                "this container keeps no notifications: an operator can switch this on with "
                    + "`belfry containers set --inbox on`")
        }
        return InboxOwner(container: admitted.settings.key, user: user)
    }
}

/// The parameters of `notifications/list`, from the body or the query.
struct NotificationListing: Sendable {
    /// The token after which to continue.
    let token: String?
    /// The maximum number of notifications.
    let limit: Int
    /// The device that asks, which does not get notifications of its own changes.
    let device: DeviceID?

    /// Reads the parameters of a request.
    ///
    /// - Throws: `JSONContractError`, or the error 400 for a limit out of range.
    init(_ request: RelayRequest) throws {
        let body = try request.optionalJSONBody()
        try body.allowOnly(["syncToken", "resultsLimit", "deviceID", "clientId", "clientID"])
        token = try body.string("syncToken") ?? request.query["syncToken"]
        let range = 1...Int64(Limits.maximumNotificationsPerPage)
        let asked: Int64?
        if let text = request.query["resultsLimit"] {
            asked = Int64(text) ?? 0
        } else {
            asked = try body.statedLimit()
        }
        if let asked, !range.contains(asked) {
            throw body.failure(
                "resultsLimit", "must be \(range.lowerBound) to \(range.upperBound)")
        }
        limit = Int(asked ?? range.upperBound)
        let named = try request.deviceParameter("deviceID")
        let client = try request.deviceParameter("clientId")
        device = try DeviceChoice(optionalIn: body).deviceID ?? named ?? client
    }
}
