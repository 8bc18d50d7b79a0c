import RelayModel
import Storage

/// A request for an explanation.
struct ExplainQuestion: Sendable {
    /// The changes that are meant.
    enum Changes: Sendable, Hashable {
        /// The change at this position.
        case position(LogPosition)
        /// The latest changes of one record.
        case record(RecordType, RecordName)
        /// The changes that a source sent under this ID of its own.
        case sent(SourceName, webhookID: String)
        /// The latest changes of any record.
        case latest
    }

    /// The default number of changes to explain for one record.
    private static let fewChanges = 3
    /// The maximum number of changes to explain.
    static let mostChanges = 50

    /// The changes.
    var changes: Changes
    /// The subscription; `nil` means all subscriptions of the user.
    var subscription: SubscriptionID?
    /// The owner of the subscriptions.
    var user: UserID?
    /// The device; `nil` means all devices of the user.
    var device: DeviceID?
    /// The delivery; it determines everything else.
    var delivery: DeliveryID?
    /// The database; `nil` means that of the change.
    var database: DatabaseScope?
    /// The zone of the record; `nil` means every zone.
    var zone: ZoneID?
    /// The maximum number of changes.
    var limit: Int

    /// Whether the changes are named by the ID of what a source sent.
    var namesWhatWasSent: Bool {
        if case .sent = changes { true } else { false }
    }

    /// The given parts, from a body or from query parameters.
    struct Parts {
        var position: UInt64?
        var recordType: RecordType?
        var recordName: RecordName?
        var zone: ZoneID?
        var source: SourceName?
        var webhookID: String?
        var subscription: SubscriptionID?
        var user: UserID?
        var device: DeviceID?
        var delivery: DeliveryID?
        var database: DatabaseScope?
        var limit: Int?
    }

    /// Creates a request from its parts; `names` are their names in the caller's request.
    ///
    /// - Throws: 400 that says what is missing or contradictory.
    init(_ parts: Parts, names: Names) throws(APIError) {
        if parts.source != nil || parts.webhookID != nil {
            changes = try Self.sent(parts)
        } else if parts.recordName != nil || parts.recordType != nil {
            guard let type = parts.recordType, let name = parts.recordName else {
                let missing = parts.recordType == nil ? "recordType" : "recordName"
                throw APIError(
                    .badRequest, "\(missing): a record needs both recordType and recordName")
            }
            guard parts.position == nil, parts.delivery == nil else {
                throw APIError(
                    .badRequest,
                    "recordName: name a change by its position or by its record, not by both")
            }
            changes = .record(type, name)
        } else if let position = parts.position {
            changes = .position(LogPosition(position))
        } else {
            guard parts.subscription != nil || parts.delivery != nil else {
                throw APIError(
                    .badRequest,
                    "position: name a change by position, or by recordType and recordName; or ask "
                        + "about a \(names.subscription) or a \(names.delivery)")
            }
            changes = .latest
        }
        guard parts.delivery == nil || (parts.subscription == nil && parts.device == nil) else {
            throw APIError(
                .badRequest,
                "\(names.delivery): a delivery already names one subscription and one device; "
                    + "leave these out")
        }
        subscription = parts.subscription
        user = parts.user
        device = parts.device
        delivery = parts.delivery
        database = parts.database
        zone = parts.zone
        let usual = changes == .latest ? 20 : Self.fewChanges
        limit = parts.limit ?? usual
        guard (1...Self.mostChanges).contains(limit) else {
            throw APIError(
                .badRequest, "limit: must be 1 to \(Self.mostChanges), found \(limit)")
        }
    }

    /// Returns the changes that are named by a source and its own ID.
    private static func sent(_ parts: Parts) throws(APIError) -> Changes {
        guard let source = parts.source, let id = parts.webhookID else {
            let missing = parts.source == nil ? "source" : "webhookID"
            throw APIError(
                .badRequest,
                "\(missing): a webhook needs both source and webhookID")
        }
        let isNamedOtherwise =
            parts.recordName != nil || parts.recordType != nil || parts.position != nil
            || parts.delivery != nil
        guard !isNamedOtherwise else {
            throw APIError(
                .badRequest,
                "webhookID: name a change by its webhookID, or by its position or record, not by "
                    + "both")
        }
        guard (1...Limits.maximumNameBytes).contains(id.utf8.count) else {
            throw APIError(
                .badRequest,
                "webhookID: must be 1 to \(Limits.maximumNameBytes) bytes, found \(id.utf8.count)")
        }
        return .sent(source, webhookID: id)
    }

    /// The names of parts that differ between body and query parameters.
    struct Names {
        let subscription, delivery: String

        static let body = Names(subscription: "subscriptionID", delivery: "deliveryID")
        static let query = Names(subscription: "subscription", delivery: "delivery")
    }
}

extension ExplainQuestion {
    /// Parses the body of a user's call.
    ///
    /// - Throws: `JSONContractError`, or 400.
    init(_ body: JSONReader, of user: UserID, in database: DatabaseScope) throws {
        try body.allowOnly(
            [
                "position", "recordType", "recordName", "subscriptionID", "deviceID", "deliveryID",
                "limit",
            ] + SubscriptionRoutes.idleMembers)
        var parts = Parts(user: user, database: database)
        parts.position = try body.position("position")
        parts.recordType = try body.identifier("recordType")
        parts.recordName = try body.identifier("recordName")
        // Clients send it with every call; it has a meaning only if a record is named.
        if parts.recordName != nil, let value = body.value("zoneID") {
            parts.zone = try ZoneID(json: value, path: body.path(of: "zoneID"))
                .implying(database.impliedOwner(user))
        }
        parts.subscription = try body.identifier("subscriptionID")
        parts.device = try body.identifier("deviceID")
        parts.delivery = try body.string("deliveryID").map { text throws(APIError) in
            try DeliveryAdministration.deliveryID(text, place: "deliveryID")
        }
        parts.limit = try body.integer("limit").map { Int(clamping: $0) }
        try self.init(parts, names: .body)
    }

    /// Parses the parameters of an operator's call.
    ///
    /// - Throws: 400.
    init(_ request: RelayRequest) throws(APIError) {
        var parts = Parts()
        parts.position = try request.number("position")
        parts.recordType = try request.parameter("recordType")
        parts.recordName = try request.parameter("recordName")
        parts.source = try request.parameter("source")
        parts.webhookID = request.query["webhookID"]
        parts.subscription = try request.parameter("subscription")
        parts.user = try request.parameter("user")
        parts.device = try request.parameter("device")
        if let text = request.query["delivery"] {
            parts.delivery = try DeliveryAdministration.deliveryID(text, place: "delivery")
        }
        if let text = request.query["database"] {
            guard let database = DatabaseScope(rawValue: text) else {
                let words = DatabaseScope.allCases.map(\.rawValue).joined(separator: ", ")
                throw APIError(
                    .badRequest,
                    "database: \"\(text.shortened)\" is unknown; allowed are \(words)")
            }
            parts.database = database
        }
        if let text = request.query["limit"] {
            guard let limit = Int(text) else {
                throw APIError(
                    .badRequest,
                    "limit: must be 1 to \(Self.mostChanges), found \"\(text.shortened)\"")
            }
            parts.limit = limit
        }
        try self.init(parts, names: .query)
    }
}

extension JSONReader {
    /// Reads a position, which is a text as in answers, or a number.
    ///
    /// - Throws: `JSONContractError` if it is neither.
    func position(_ name: String) throws(JSONContractError) -> UInt64? {
        switch value(name) {
        case nil: return nil
        case .integer(let number)? where number >= 0: return UInt64(number)
        case .string(let text)?:
            if let number = UInt64(text) { return number }
            throw failure(
                name, "a whole number from 0 is expected, found \"\(text.shortened)\"")
        case let other?:
            throw failure(name, "a whole number from 0 is expected, found \(other.kind)")
        }
    }
}
