import Delivery
import RelayModel
import Storage

/// Receipts, retries and dead letters: list, redrive, drop.
struct DeliveryAdministration: AdministrationTable {
    let registry: any ContainerRegistry & DeliveryRegistry & DeadLetterRegistry & ListRegistry
    /// The halts in force: what is not sent, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// Ends the halts of a container, and returns how many there were.
    let resume: @Sendable (ContainerKey) -> Int
    /// Called after dead letters were turned into retries that are due.
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
        var filter = try await request.receiptFilter(registry)
        if let text = request.query["deliveryID"] {
            filter.receipt.deliveryID = try Self.deliveryID(text, place: "deliveryID")
        }
        if let word = request.query["outcome"] { filter.receipt.outcome = try Self.outcome(word) }
        let page = try await registry.listedReceipts(
            filter, before: try request.receiptPlace(), PageBounds(rows: try request.limit()))
        let names = try await registry.names(of: page.elements)
        return AdministrationCall.listReceipts.answer(
            page.elements.map { AdministrationRows.receipt.json(NamedReceipt($0, names)) },
            next: page.next?.member)
    }

    private func retries(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let filter = try await DeliveryQuestion(request).filter(
            of: container, reason: request.query["reason"], registry)
        let page = try await registry.listedRetries(
            of: container, filter, before: try request.deliveryPlace(),
            PageBounds(rows: try request.limit()))
        let halts = halts()
        return AdministrationCall.listRetries.answer(
            page.elements.map {
                AdministrationRows.retry.json(
                    WaitingRetry($0, among: halts, at: request.receivedAt))
            }, next: page.next?.member)
    }

    /// Ends the halts of a container, so that its deliveries are tried at once.
    private func endHalts(_ request: RelayRequest) async throws -> RelayAnswer {
        let ended = resume(try await registry.key(in: request))
        return RelayAnswer(json: ["ended": .integer(Int64(ended))])
    }

    private func deadLetters(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let filter = try await DeliveryQuestion(request).filter(
            of: container, reason: request.query["reason"], registry)
        let page = try await registry.listedDeadLetters(
            of: container, filter, before: try request.deliveryPlace(),
            PageBounds(rows: try request.limit()))
        return AdministrationCall.listDeadLetters.answer(
            page.elements.map(AdministrationRows.deadLetter.json), next: page.next?.member)
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

/// The dead letters that a call selects: by ID, by reason, or explicitly all.
struct DeadLetterChoice {
    /// The IDs of the dead letters; `nil` does not filter by ID.
    let ids: [DeliveryID]?
    /// The reason of the dead letters; `nil` does not filter by reason.
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
        // With both, only the given ones would be selected, although the caller expects all.
        guard !isAll || ids == nil && reason == nil else {
            throw APIError(.badRequest, "all: cannot be given together with ids or reason")
        }
    }
}
