import Delivery
import RelayModel
import Storage

/// Receipts, retries and dead letters: list, redrive, drop.
struct DeliveryAdministration: AdministrationTable {
    let registry: any ContainerRegistry & DeliveryRegistry & DeadLetterRegistry
    /// What waits, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// Ends the halts of a container, and says how many there were.
    let resume: @Sendable (ContainerKey) -> Int
    /// Is told that dead letters were turned into retries that are due.
    let redriven: @Sendable () -> Void

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listReceipts, respond: receipts),
            AdministrationRoute(.listRetries, respond: retries),
            AdministrationRoute(.listDeadLetters, respond: deadLetters),
            AdministrationRoute(.redriveDeadLetters, respond: redrive),
            AdministrationRoute(.dropDeadLetters, respond: drop),
            AdministrationRoute(.resume, respond: endHalts),
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
        return AdministrationCall.listReceipts.answer(
            receipts.map(AdministrationRows.receipt.json))
    }

    private func retries(_ request: RelayRequest) async throws -> RelayAnswer {
        let retries = try await registry.retries(
            of: try await registry.key(in: request), limit: try request.limit())
        let halts = halts()
        return AdministrationCall.listRetries.answer(
            retries.map {
                AdministrationRows.retry.json(
                    WaitingRetry($0, among: halts, at: request.receivedAt))
            })
    }

    /// Lets what is halted go at once.
    private func endHalts(_ request: RelayRequest) async throws -> RelayAnswer {
        let ended = resume(try await registry.key(in: request))
        return RelayAnswer(json: ["ended": .integer(Int64(ended))])
    }

    private func deadLetters(_ request: RelayRequest) async throws -> RelayAnswer {
        let letters = try await registry.deadLetters(
            of: try await registry.key(in: request), reason: request.query["reason"],
            limit: try request.limit())
        return AdministrationCall.listDeadLetters.answer(
            letters.map(AdministrationRows.deadLetter.json))
    }

    private func redrive(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let choice = try DeadLetterChoice(AdministrationCall.redriveDeadLetters.body(of: request))
        let redriving = try await registry.redriveDeadLetters(
            choice.ids, of: container, reason: choice.reason, at: request.receivedAt)
        redriven()
        return RelayAnswer(json: [
            "redriven": .integer(Int64(redriving.redriven)),
            "expired": .integer(Int64(redriving.expired)),
        ])
    }

    private func drop(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let choice = try DeadLetterChoice(AdministrationCall.dropDeadLetters.body(of: request))
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
