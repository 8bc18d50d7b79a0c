import Delivery
import RelayModel
import Storage

/// Deliveries, each with all its attempts: list, show.
///
/// A receipt is of one attempt; what a delivery came to is said by the newest, and by the row that
/// it has if it waits or is dead: one that is redriven waits, and its newest receipt is of its end.
struct OneDeliveryAdministration: AdministrationTable {
    let registry: any DeliveryRegistry & ClientReceiptRegistry
    /// What waits, and why.
    let halts: @Sendable () -> [HaltInForce]

    /// Receipts that are looked at for one list.
    private static let receiptLimit = 10_000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listDeliveries, respond: list),
            AdministrationRoute(.showDelivery, respond: show),
        ]
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        var filter = ReceiptFilter()
        filter.position = try request.number("position").map { LogPosition($0) }
        filter.subscriptionSerial = try request.number("subscriptionSerial")
        filter.deviceSerial = try request.number("deviceSerial")
        let wanted = try request.query["state"].map(Self.standing)
        let limit = try request.limit()
        let receipts = try await registry.receipts(
            matching: filter, limit: Self.receiptLimit)
        var known: Set<DeliveryID> = []
        // The newest receipt of each says what it came to.
        let newest = receipts.filter { known.insert($0.deliveryID).inserted }
        let redriven = try await registry.waiting(
            among: newest.filter { DeliveryStanding($0.outcome) == .dead }.map(\.deliveryID))
        let found = newest.lazy.map { receipt in
            (
                receipt,
                redriven.contains(receipt.deliveryID) ? .waiting : DeliveryStanding(receipt.outcome)
            )
        }.filter { wanted == nil || wanted == $0.1 }
        let shown = Array(found.prefix(limit))
        let said = try await said(of: shown.map(\.0))
        return AdministrationCall.listDeliveries.answer(
            shown.map { receipt, standing in
                AdministrationRows.delivery.json((receipt, standing, said[receipt.deliveryID]))
            })
    }

    /// What clients said of deliveries.
    private func said(
        of receipts: [DeliveryReceipt]
    ) async throws -> [DeliveryID: ClientReceipt] {
        let holders = try await registry.holders(ofDevices: Set(receipts.map(\.deviceSerial)))
        var positions: [InboxOwner: Set<LogPosition>] = [:]
        for receipt in receipts {
            guard let holder = holders[receipt.deviceSerial] else { continue }
            positions[holder.owner, default: []].insert(receipt.ordinal.position)
        }
        var said: [InboxOwner: [ClientReceipt]] = [:]
        for (owner, positions) in positions {
            said[owner] = try await registry.clientReceipts(of: owner, at: positions)
        }
        var found: [DeliveryID: ClientReceipt] = [:]
        for receipt in receipts {
            guard let holder = holders[receipt.deviceSerial] else { continue }
            found[receipt.deliveryID] = said[holder.owner]?.merged(
                of: receipt.ordinal.position, receipt.subscriptionSerial, to: holder.device)
        }
        return found
    }

    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        let id = try DeliveryAdministration.deliveryID(
            request.parameters["delivery"] ?? "", place: "delivery")
        var filter = ReceiptFilter()
        filter.deliveryID = id
        let receipts = try await registry.receipts(
            matching: filter, limit: Self.receiptLimit)
        let exception = try await registry.exception(id)
        guard let newest = receipts.first else {
            throw APIError(
                .notFound,
                "there is no receipt of the delivery \(id): it is not settled, or its receipts are "
                    + "no longer kept")
        }
        let client = try await said(of: [newest])[id]
        var shown = AdministrationRows.delivery.json(
            (newest, DeliveryStanding(newest.outcome), client))
        switch exception {
        case .retry(let retry):
            shown["state"] = .string(DeliveryStanding.waiting.rawValue)
            shown["retry"] = .object(
                AdministrationRows.retry.json(
                    WaitingRetry(retry, among: halts(), at: request.receivedAt)))
        case .deadLetter(let letter):
            shown["state"] = .string(DeliveryStanding.dead.rawValue)
            shown["deadLetter"] = .object(AdministrationRows.deadLetter.json(letter))
        case nil: break
        }
        shown["receipts"] = .array(
            receipts.reversed().map { .object(AdministrationRows.receipt.json($0)) })
        return RelayAnswer(json: .object(shown))
    }

    private static func standing(_ word: String) throws(APIError) -> DeliveryStanding {
        guard let standing = DeliveryStanding(rawValue: word) else {
            let words = DeliveryStanding.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(
                .badRequest, "state: \"\(word.shortened)\" is unknown; allowed are \(words)")
        }
        return standing
    }
}
