import Delivery
import RelayModel
import Storage

/// Deliveries, each with all its attempts: list, show.
///
/// A receipt is of one attempt; what a delivery came to is said by the newest, and by the row that
/// it has if it waits or is dead: one that is redriven waits, and its newest receipt is of its end.
struct OneDeliveryAdministration: AdministrationTable {
    let registry: any ContainerRegistry & DeliveryRegistry & ListRegistry & ClientReceiptRegistry
    /// What waits, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// The shard of the store; `nil` where it is the only one.
    let shard: String?

    /// Receipts that are looked at for one list.
    private static let receiptLimit = 10_000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listDeliveries, respond: list),
            AdministrationRoute(.listContainerDeliveries, respond: list),
            AdministrationRoute(.showDelivery, respond: show),
            AdministrationRoute(.showContainerDelivery, respond: show),
        ]
    }

    /// Where else it may be, for who names no container.
    private func elsewhere(_ request: RelayRequest) -> String {
        guard let shard, request.parameters["container"] == nil else { return "" }
        return ", or it is of another shard than \(shard): name its container, or the shard"
    }

    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let filter = try await request.receiptFilter(registry)
        let wanted = try request.word("state", of: DeliveryStanding.self)
        let limit = try request.limit()
        let begin = try request.receiptPlace()
        var place = begin
        var known: Set<DeliveryID> = []
        var found: [(DeliveryReceipt, DeliveryStanding)] = []
        var looked = 0
        repeat {
            // As many as are wanted still, so that the next page goes on behind the last one.
            let page = try await registry.listedReceipts(
                filter, before: place, PageBounds(rows: limit - found.count))
            looked += page.elements.count
            // The newest receipt of each says what it came to.
            let newest = page.elements.filter { known.insert($0.deliveryID).inserted }
            found += try await standings(of: newest, isFirstPage: begin == nil)
                .filter { wanted == nil || wanted == $0.1 }
            place = page.next
        } while place != nil && found.count < limit && looked < Self.receiptLimit
        let names = try await registry.names(of: found.map(\.0))
        let said = try await said(of: found.map(\.0))
        return AdministrationCall.listDeliveries.answer(
            found.map { receipt, standing in
                AdministrationRows.delivery.json(
                    (NamedReceipt(receipt, names), standing, said[receipt.deliveryID]))
            },
            next: place?.member)
    }

    /// What has become of deliveries: their rows say more than their receipts.
    ///
    /// What is no retry any more, and has a receipt that it is one, is counted by a digest, has a
    /// newer receipt on an earlier page, or was ended without an attempt.
    private func standings(
        of receipts: [DeliveryReceipt], isFirstPage: Bool
    ) async throws -> [(DeliveryReceipt, DeliveryStanding)] {
        let open = receipts.filter { DeliveryStanding($0.outcome) != .delivered }
        let waiting = try await registry.waiting(among: open.map(\.deliveryID))
        let fates = try await registry.digestFates(
            of: open.filter { $0.isHeld && !waiting.contains($0.deliveryID) })
        return receipts.compactMap { receipt in
            if waiting.contains(receipt.deliveryID) { return (receipt, .waiting) }
            switch fates[receipt.deliveryID] {
            case .open?: return (receipt, .waiting)
            case .closed(let at, _, let teller, _)?
            where at >= receipt.at && teller != receipt.deliveryID:
                return (receipt, .folded)
            case .closed?, nil: break
            }
            let standing = DeliveryStanding(receipt.outcome)
            guard standing == .waiting else { return (receipt, standing) }
            return isFirstPage ? (receipt, .dead) : nil
        }
    }

    /// What clients said of deliveries.
    private func said(
        of receipts: [DeliveryReceipt]
    ) async throws -> [DeliveryID: PushReceipt] {
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
        var found: [DeliveryID: PushReceipt] = [:]
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
        guard let newest = receipts.first, try await isMeant(newest, by: request) else {
            throw APIError(
                .notFound,
                "there is no receipt of the delivery \(id): it is not settled, or its receipts are "
                    + "no longer kept" + elsewhere(request))
        }
        let names = try await registry.names(of: [newest])
        let client = try await said(of: [newest])[id]
        let standing =
            newest.isHeld
            ? try await standings(of: [newest], isFirstPage: true).first?.1 : nil
        var shown = AdministrationRows.delivery.json(
            (NamedReceipt(newest, names), standing ?? DeliveryStanding(newest.outcome), client))
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
            receipts.reversed().map {
                .object(AdministrationRows.receipt.json(NamedReceipt($0, names)))
            })
        return RelayAnswer(json: .object(shown))
    }
}

private extension OneDeliveryAdministration {
    /// Whether a delivery is of the container of the request, if that names one: its device says
    /// so.
    func isMeant(_ receipt: DeliveryReceipt, by request: RelayRequest) async throws -> Bool {
        guard request.parameters["container"] != nil else { return true }
        let key = try await registry.key(in: request)
        let serial = receipt.deviceSerial
        return try await registry.holders(ofDevices: [serial])[serial]?.owner.container == key
    }
}

extension RelayRequest {
    /// What the parameters narrow a list of receipts to.
    ///
    /// - Throws: 400 that names what cannot be, 404 if there is no such container.
    func receiptFilter(
        _ registry: any ContainerRegistry & ListRegistry
    ) async throws -> ReceiptListFilter {
        var filter = ReceiptListFilter()
        filter.receipt.position = try number("position").map { LogPosition($0) }
        filter.receipt.subscriptionSerial = try number("subscriptionSerial")
        filter.receipt.deviceSerial = try number("deviceSerial")
        let question = try DeliveryQuestion(self)
        if parameters["container"] != nil {
            let key = try await registry.key(in: self)
            filter.container = key
            try await question.narrow(&filter, to: key, registry)
            return filter
        }
        guard !question.isEmpty else { return filter }
        guard let container: ContainerID = try parameter("container") else {
            throw APIError(
                .badRequest, "container: is needed beside user and record: names are a container's")
        }
        let environment = try word("environment", of: ContainerEnvironment.self) ?? .development
        let key = ContainerKey(container: container, environment: environment)
        guard try await registry.container(key) != nil else {
            throw APIError(.notFound, "there is no container \(key)")
        }
        try await question.narrow(&filter, to: key, registry)
        return filter
    }
}
