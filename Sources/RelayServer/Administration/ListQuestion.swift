import RelayModel
import Storage

/// Which changes an operator wants to see, by what became of them.
enum ChangeState: String, CaseIterable {
    /// They were judged.
    case applied
    /// They came too late.
    case stale
}

/// Which subscriptions an operator wants to see.
enum SubscriptionState: String, CaseIterable {
    case active, disabled
}

/// What a list of deliveries is narrowed by, in the names that people know.
struct DeliveryQuestion: Sendable {
    /// Changes of one record that are looked for, the newest.
    private static let changesOfRecord = 1000
    /// Versions of a user's subscriptions and devices that are looked for.
    private static let versionsOfUser = 10_000

    let user: UserID?
    let subscription: SubscriptionID?
    let device: DeviceID?
    let recordType: RecordType?
    let record: RecordName?

    /// Reads the parameters.
    ///
    /// - Throws: 400 that names the one that cannot be, or that is missing.
    init(_ request: RelayRequest) throws(APIError) {
        user = try request.parameter("user")
        subscription = try request.parameter("subscription")
        device = try request.parameter("device")
        recordType = try request.parameter("recordType")
        record = try request.parameter("record")
        if user == nil, subscription != nil || device != nil {
            throw APIError(
                .badRequest,
                "user: is needed beside subscription and device, because users may have the same")
        }
    }

    /// Whether nothing is narrowed by a name.
    var isEmpty: Bool { user == nil && recordType == nil && record == nil }

    /// What retries and dead letters are narrowed by.
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

    /// What receipts are narrowed by: they know serials and positions.
    func narrow(
        _ filter: inout ReceiptListFilter, to container: ContainerKey,
        _ registry: any ListRegistry
    ) async throws {
        if record == nil, recordType != nil {
            throw APIError(
                .badRequest, "record: is needed beside recordType: receipts know changes only")
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
    /// One of the words that a parameter may be; `nil` if it is not given.
    ///
    /// - Throws: 400 that lists the words.
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

    /// The parameter `before` of a list in two orders; `after` asks for the other one.
    ///
    /// - Throws: 400 if both are given.
    func numberBefore() throws(APIError) -> UInt64? {
        guard query["before"] == nil || query["after"] == nil else {
            throw APIError(.badRequest, "before: cannot be given together with after")
        }
        return try number("before")
    }

    /// Two numbers, or a number and a text, with a dot between them, as ``place(_:_:)`` writes it.
    private func parts(of name: String) throws(APIError) -> (Int64, String)? {
        guard let text = query[name] else { return nil }
        let parts = text.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let first = Int64(parts[0]) else { throw noPlace(name, text) }
        return (first, String(parts[1]))
    }

    private func noPlace(_ name: String, _ text: String) -> APIError {
        APIError(
            .badRequest,
            "\(name): \"\(text.shortened)\" is no place in this list; take the one of an answer")
    }

    /// The place among deliveries before which a list stands.
    func deliveryPlace() throws(APIError) -> DeliveryListPlace? {
        guard let (order, id) = try parts(of: "before") else { return nil }
        guard let uuid = UUIDBytes(id) else { throw noPlace("before", id) }
        return DeliveryListPlace(order: order, delivery: DeliveryID(uuid))
    }

    /// The place among receipts before which a list stands.
    func receiptPlace() throws(APIError) -> ReceiptPlace? {
        guard let (block, text) = try parts(of: "before") else { return nil }
        guard let seen = Int(text), seen >= 0 else { throw noPlace("before", text) }
        return ReceiptPlace(block: block, seen: seen)
    }
}

extension DeliveryListPlace {
    /// Where a list goes on, as a member of its answer.
    var member: (name: String, value: JSONValue) { ("before", .string("\(order).\(delivery)")) }
}

extension ReceiptPlace {
    /// Where a list goes on, as a member of its answer.
    var member: (name: String, value: JSONValue) { ("before", .string("\(block).\(seen)")) }
}
