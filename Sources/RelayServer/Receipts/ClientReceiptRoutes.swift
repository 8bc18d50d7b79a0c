import RelayModel
import Storage

/// What a user's clients say of notifications: `markDelivered` and `markOpened`, beside `markRead`.
///
/// They need no inbox: what was pushed is known by its receipts, and the `nid` that a push carries
/// proves itself.
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
    /// How a notification is named.
    enum Name: Sendable, Hashable {
        /// By the `nid` that its push carries, which all pushes of a change to one user share.
        case notification(UUIDBytes)
        /// By the `apns-id` of one push.
        case delivery(DeliveryID)
        /// Something that is no such ID.
        case nothing
    }

    /// One notification of which something is said.
    struct Item: Sendable {
        /// Which.
        var name: Name
        /// The name as it was given, and by which member.
        var member: String
        var text: String
        /// The change that it tells of, which a push has as `belfry.seq`.
        var position: LogPosition?
        /// When it happened; `nil` is now.
        var at: Timestamp?
    }

    /// The notifications, in order.
    let items: [Item]
    /// The device that says it.
    let device: DeviceID?

    /// Reads it.
    ///
    /// - Throws: `JSONContractError`, or 400 for too many.
    init(_ body: JSONReader, limits: RequestLimits) throws {
        try body.allowOnly(
            ["notifications", "notificationIDs", "deviceID", "clientId", "clientID"])
        device = try DeviceChoice(optionalIn: body).deviceID
        if let texts = try body.strings("notificationIDs") {
            guard body.value("notifications") == nil else {
                throw body.failure(
                    "notifications", "notificationIDs is its short form: give one of the two")
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
    /// A notification by its `nid`.
    init(notification text: String) {
        name = UUIDBytes(text).map { .notification($0) } ?? .nothing
        member = "notificationID"
        self.text = text
    }

    /// A push by its `apns-id`.
    init(delivery text: String) {
        name = UUIDBytes(text).map { .delivery(DeliveryID($0)) } ?? .nothing
        member = "deliveryID"
        self.text = text
    }

    /// Reads a notification with what is said of it.
    ///
    /// - Throws: `JSONContractError`.
    init(_ reader: JSONReader) throws {
        try reader.allowOnly(["notificationID", "deliveryID", "position", "at"])
        if let delivery = try reader.string("deliveryID") {
            guard reader.value("notificationID") == nil else {
                throw reader.failure(
                    "deliveryID", "one of notificationID and deliveryID names it, not both")
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

    /// What became of it, as the answer says it.
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
