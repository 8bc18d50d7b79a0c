import RelayModel
import Storage

/// The routes by which a user's clients report about notifications: `markDelivered` and
/// `markOpened`, beside `markRead`.
///
/// They need no inbox: the relay knows from its receipts what was pushed. A client can know a `nid`
/// only from its push, so the `nid` also authorizes the report.
struct ClientReceiptRoutes: Sendable {
    let clients: ClientAdmission
    let service: ClientReceiptService
    let queries: QueryAdmission
    let limits: RequestLimits

    var routes: [RelayRoute] {
        let places = [
            "/device/1/{container}/{environment}",
            "/database/1/{container}/{environment}/{database}",
        ]
        return places.map { "\($0)/notifications" }.flatMap { prefix in
            [
                clients.route("POST", "\(prefix)/markDelivered") { request, admitted in
                    try await mark(.delivered, request, admitted)
                },
                clients.route("POST", "\(prefix)/markOpened") { request, admitted in
                    try await mark(.opened, request, admitted)
                },
            ]
        }
    }

    private func mark(
        _ kind: ClientMark.Kind, _ request: RelayRequest, _ admitted: AdmittedCaller
    ) async throws -> RelayAnswer {
        let settings = admitted.settings
        let owner = InboxOwner(container: settings.key, user: try admitted.user())
        let marking = try ClientMarking(request.jsonBody(), limits: limits)
        let outcomes = try await queries.run(
            .user(owner.user), of: settings.key, places: settings.quotas.limits[.queries]
        ) { allowance in
            try await service.mark(
                marking, kind, of: owner, within: allowance, at: request.receivedAt)
        }
        let entries = zip(marking.items, outcomes).map { item, outcome in
            item.entry(outcome, uuid: request.uuid)
        }
        return RelayAnswer(json: ["notifications": .array(entries)])
    }
}

/// The body of `markDelivered` and `markOpened`.
struct ClientMarking: Sendable {
    /// The identification of a notification.
    enum Name: Sendable, Hashable {
        /// The `nid` in the push; all pushes of one change to one user share it.
        case notification(UUIDBytes)
        /// The `apns-id` of one push.
        case delivery(DeliveryID)
        /// A text that is not a valid ID.
        case nothing
    }

    /// One notification that the client reports about.
    struct Item: Sendable {
        /// The identification of the notification.
        var name: Name
        /// The member that named the notification, and the text as it was given.
        var member: String
        var text: String
        /// The position of the change; a push contains it as `belfry.seq`.
        var position: LogPosition?
        /// When it was delivered or opened; `nil` means now.
        var at: Timestamp?
    }

    /// The notifications, in order.
    let items: [Item]
    /// The device that reports.
    let device: DeviceID?

    /// Reads the body.
    ///
    /// - Throws: `JSONContractError`, or 400 for too many notifications.
    init(_ body: JSONReader, limits: RequestLimits) throws {
        try body.allowOnly(
            ["notifications", "notificationIDs", "deviceID", "clientId", "clientID"])
        device = try DeviceChoice(optionalIn: body).deviceID
        if let texts = try body.strings("notificationIDs") {
            guard body.value("notifications") == nil else {
                throw body.failure(
                    "notifications", "cannot be given together with notificationIDs, its short form"
                )
            }
            try limits.check(texts.count, of: "notificationIDs")
            items = texts.map { Item(notification: $0) }
            return
        }
        let elements = try body.require("notifications", try body.array("notifications"))
        try limits.check(elements.count, of: "notifications")
        items = try elements.enumerated().map { index, element in
            if case .string(let text) = element { return Item(notification: text) }
            return try Item(try JSONReader(element, path: "notifications[\(index)]"))
        }
    }
}

extension ClientMarking.Item {
    /// Creates an item from the `nid` of a notification.
    init(notification text: String) {
        name = UUIDBytes(text).map { .notification($0) } ?? .nothing
        member = "notificationID"
        self.text = text
    }

    /// Creates an item from the `apns-id` of a push.
    init(delivery text: String) {
        name = UUIDBytes(text).map { .delivery(DeliveryID($0)) } ?? .nothing
        member = "deliveryID"
        self.text = text
    }

    /// Reads one element of the list.
    ///
    /// - Throws: `JSONContractError` for an invalid member.
    init(_ reader: JSONReader) throws {
        try reader.allowOnly(["notificationID", "deliveryID", "position", "at"])
        if let delivery = try reader.string("deliveryID") {
            guard reader.value("notificationID") == nil else {
                throw reader.failure(
                    "deliveryID", "cannot be given together with notificationID")
            }
            self.init(delivery: delivery)
        } else {
            self.init(
                notification: try reader.require(
                    "notificationID", try reader.string("notificationID")))
        }
        position = try reader.position("position").map { LogPosition($0) }
        at = try reader.moment("at")
    }

    /// Returns the outcome as an entry of the answer.
    func entry(_ outcome: ClientReceiptService.Outcome, uuid: String) -> JSONValue {
        let shown: String =
            switch name {
            case .notification(let id): id.description
            case .delivery(let id): id.description
            case .nothing: text.shortened
            }
        switch outcome {
        case .refused(let error):
            return error.entry(member, .string(shown), uuid: uuid)
        case .noted(let receipt):
            var object: JSONObject = [
                member: .string(shown), "isDelivered": true,
                "deliveredAt": .string(receipt.deliveredAt.iso8601),
                "isOpened": .bool(receipt.openedAt != nil),
            ]
            object["openedAt"] = receipt.openedAt.map { .string($0.iso8601) }
            return .object(object)
        }
    }
}
