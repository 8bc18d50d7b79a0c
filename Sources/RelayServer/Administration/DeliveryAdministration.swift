import Delivery
import RelayModel
import Storage

/// Receipts, retries and dead letters: list, redrive, drop.
struct DeliveryAdministration: AdministrationTable {
    let registry: any Registry
    /// What waits, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// Ends the halts of a container, and says how many there were.
    let resume: @Sendable (ContainerKey) -> Int
    /// Is told that dead letters were turned into retries that are due.
    let redriven: @Sendable () -> Void

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute("GET", "/admin/1/receipts", respond: receipts),
            route("GET", "/retries", respond: retries),
            route("GET", "/deadLetters", respond: deadLetters),
            route("POST", "/deadLetters/redrive", respond: redrive),
            route("POST", "/deadLetters/drop", respond: drop),
            route("POST", "/resume", respond: endHalts),
        ]
    }

    private func receipts(_ request: RelayRequest) async throws -> RelayAnswer {
        var filter = ReceiptFilter()
        if let text = request.query["deliveryID"] {
            filter.deliveryID = try Self.deliveryID(text, place: "deliveryID")
        }
        filter.position = try request.number("position").map { LogPosition($0) }
        filter.subscriptionSerial = try request.number("subscriptionSerial")
        filter.deviceSerial = try request.number("deviceSerial")
        if let word = request.query["outcome"] { filter.outcome = try Self.outcome(word) }
        let receipts = try await registry.receipts(
            matching: filter, limit: try request.limit())
        return RelayAnswer(json: ["receipts": .array(receipts.map(\.json))])
    }

    private func retries(_ request: RelayRequest) async throws -> RelayAnswer {
        let retries = try await registry.retries(
            of: try await key(request), limit: try request.limit())
        let halts = halts()
        return RelayAnswer(json: [
            "retries": .array(
                retries.map { $0.shown(among: halts, at: request.receivedAt) })
        ])
    }

    /// Lets what is halted go at once.
    private func endHalts(_ request: RelayRequest) async throws -> RelayAnswer {
        let ended = resume(try await key(request))
        return RelayAnswer(json: ["ended": .integer(Int64(ended))])
    }

    private func deadLetters(_ request: RelayRequest) async throws -> RelayAnswer {
        let letters = try await registry.deadLetters(
            of: try await key(request), reason: request.query["reason"],
            limit: try request.limit())
        return RelayAnswer(json: ["deadLetters": .array(letters.map(\.json))])
    }

    private func redrive(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await key(request)
        let choice = try DeadLetterChoice(request.jsonBody())
        let redriving = try await registry.redriveDeadLetters(
            choice.ids, of: container, reason: choice.reason, at: request.receivedAt)
        redriven()
        return RelayAnswer(json: [
            "redriven": .integer(Int64(redriving.redriven)),
            "expired": .integer(Int64(redriving.expired)),
        ])
    }

    private func drop(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await key(request)
        let choice = try DeadLetterChoice(request.jsonBody())
        let count = try await registry.dropDeadLetters(
            choice.ids, of: container, reason: choice.reason)
        return RelayAnswer(json: ["dropped": .integer(Int64(count))])
    }

    static func deliveryID(_ text: String, place: String) throws(APIError) -> DeliveryID {
        guard let uuid = UUIDBytes(text) else {
            throw APIError(
                .badRequest, "\(place): \"\(text.shortened)\" is not a UUID (an apns-id)")
        }
        return DeliveryID(uuid)
    }

    private static func outcome(_ word: String) throws(APIError) -> DeliveryReceipt.Outcome {
        guard let outcome = DeliveryReceipt.Outcome.allCases.first(where: { $0.word == word })
        else {
            let words = DeliveryReceipt.Outcome.allCases.map(\.word).joined(separator: ", ")
            throw APIError(
                .badRequest, "outcome: \"\(word.shortened)\" is unknown; allowed are \(words)")
        }
        return outcome
    }
}

/// Which dead letters are meant: some by ID, those with a reason, or all, said expressly.
struct DeadLetterChoice {
    /// Those with these IDs; `nil` does not narrow.
    let ids: [DeliveryID]?
    /// Those with this reason; `nil` does not narrow.
    let reason: String?

    init(_ body: JSONReader) throws {
        try body.allowOnly(["ids", "reason", "all"])
        ids = try body.strings("ids")?.enumerated().map { index, text in
            try DeliveryAdministration.deliveryID(text, place: "ids[\(index)]")
        }
        reason = try body.string("reason")
        let isAll = try body.bool("all") ?? false
        guard ids != nil || reason != nil || isAll else {
            throw APIError(.badRequest, "one of ids, reason and \"all\": true is required")
        }
    }
}

extension DeliveryReceipt.Outcome {
    /// The word for it on the wire.
    var word: String {
        switch self {
        case .accepted: "accepted"
        case .deferred: "deferred"
        case .unregistered: "unregistered"
        case .dead: "dead"
        }
    }
}

extension DeliveryReceipt {
    var json: JSONValue {
        [
            "deliveryID": .string(deliveryID.description),
            "position": .string(ordinal.position.description),
            "offset": .integer(Int64(ordinal.offset)),
            "subscriptionSerial": .string(String(subscriptionSerial)),
            "deviceSerial": .string(String(deviceSerial)), "outcome": .string(outcome.word),
            "status": .integer(Int64(status)), "reason": .string(reason),
            "attempt": .integer(Int64(attempt)), "at": .string(at.iso8601),
        ]
    }
}
