import RelayModel
import Storage

/// The state by which a list of changes is filtered.
enum ChangeState: String, CaseIterable {
    /// The change was applied.
    case applied
    /// The change was stale: older than what was already applied to its record.
    case stale
}

/// The state by which a list of subscriptions is filtered.
enum SubscriptionState: String, CaseIterable {
    case active, disabled
}

/// The filter of a list of deliveries, by names.
struct DeliveryQuestion: Sendable {
    /// The maximum number of changes of one record that a filter covers; the newest ones.
    private static let changesOfRecord = 1000
    /// The maximum number of versions of a user's subscriptions or devices that a filter covers.
    private static let versionsOfUser = 10_000

    let user: UserID?
    let subscription: SubscriptionID?
    let device: DeviceID?
    let recordType: RecordType?
    let record: RecordName?

    /// Reads the filter from the query parameters.
    ///
    /// - Throws: 400 that names the parameter that is invalid or missing.
    init(_ request: RelayRequest) throws(APIError) {
        user = try request.parameter("user")
        subscription = try request.parameter("subscription")
        device = try request.parameter("device")
        recordType = try request.parameter("recordType")
        record = try request.parameter("record")
        if user == nil, subscription != nil || device != nil {
            throw APIError(
                .badRequest,
                "user: is required with subscription or device, because several users may have one "
                    + "of the same name")
        }
    }

    /// Whether the filter names neither a user nor a record or record type.
    var isEmpty: Bool { user == nil && recordType == nil && record == nil }

    /// Returns the filter for retries and dead letters.
    func filter(
        of container: ContainerKey, reason: String?, _ registry: any ListRegistry
    ) async throws -> DeliveryListFilter {
        var filter = DeliveryListFilter()
        filter.user = user
        filter.subscription = subscription
        filter.device = device
        filter.reason = reason
        filter.recordType = record == nil ? recordType : nil
        filter.positions = try await positions(in: container, registry)
        return filter
    }

    /// Adds this filter to a filter of receipts, which contain serials and positions instead of
    /// names.
    func narrow(
        _ filter: inout ReceiptListFilter, to container: ContainerKey,
        _ registry: any ListRegistry
    ) async throws {
        if record == nil, recordType != nil {
            throw APIError(
                .badRequest,
                "record: is required with recordType, because receipts name only changes")
        }
        filter.positions = try await positions(in: container, registry)
        guard let user else { return }
        if let subscription {
            filter.subscriptions = Set(
                try await registry.serials(
                    of: user, in: container, .subscriptions(subscription),
                    limit: Self.versionsOfUser))
        }
        if device != nil || subscription == nil {
            filter.devices = Set(
                try await registry.serials(
                    of: user, in: container, .devices(device), limit: Self.versionsOfUser))
        }
    }

    private func positions(
        in container: ContainerKey, _ registry: any ListRegistry
    ) async throws -> Set<LogPosition>? {
        guard let record else { return nil }
        return Set(
            try await registry.positions(
                ofRecord: record, recordType, in: container, limit: Self.changesOfRecord))
    }
}

extension RelayRequest {
    /// Returns a parameter that must be one of the words of `Word`; `nil` if it is not given.
    ///
    /// - Throws: 400 that lists the allowed words.
    func word<Word: RawRepresentable<String> & CaseIterable>(
        _ name: String, of type: Word.Type = Word.self
    ) throws(APIError) -> Word? {
        guard let text = query[name] else { return nil }
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(
                .badRequest, "\(name): \"\(text.shortened)\" is unknown; allowed are \(words)")
        }
        return word
    }

    /// Returns the parameter `before` of a list that has two orders; `after` selects the other
    /// order.
    ///
    /// - Throws: 400 if both are given.
    func numberBefore() throws(APIError) -> UInt64? {
        guard query["before"] == nil || query["after"] == nil else {
            throw APIError(.badRequest, "before: cannot be given together with after")
        }
        return try number("before")
    }

    /// Returns a number and a text that a dot separates, the form in which `member` writes a place.
    private func parts(of name: String) throws(APIError) -> (Int64, String)? {
        guard let text = query[name] else { return nil }
        let parts = text.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let first = Int64(parts[0]) else { throw noPlace(name, text) }
        return (first, String(parts[1]))
    }

    private func noPlace(_ name: String, _ text: String) -> APIError {
        APIError(
            .badRequest,
            "\(name): \"\(text.shortened)\" is not a place in this list; take the value from an "
                + "earlier answer")
    }

    /// Returns the place among deliveries before which the list begins; `nil` if none is given.
    func deliveryPlace() throws(APIError) -> DeliveryListPlace? {
        guard let (order, id) = try parts(of: "before") else { return nil }
        guard let uuid = UUIDBytes(id) else { throw noPlace("before", id) }
        return DeliveryListPlace(order: order, delivery: DeliveryID(uuid))
    }

    /// Returns the place among receipts before which the list begins; `nil` if none is given.
    func receiptPlace() throws(APIError) -> ReceiptPlace? {
        guard let (block, text) = try parts(of: "before") else { return nil }
        guard let seen = Int(text), seen >= 0 else { throw noPlace("before", text) }
        return ReceiptPlace(block: block, seen: seen)
    }
}

extension DeliveryListPlace {
    /// The member of an answer that says where the list continues.
    var member: (name: String, value: JSONValue) { ("before", .string("\(order).\(delivery)")) }
}

extension ReceiptPlace {
    /// The member of an answer that says where the list continues.
    var member: (name: String, value: JSONValue) { ("before", .string("\(block).\(seen)")) }
}
