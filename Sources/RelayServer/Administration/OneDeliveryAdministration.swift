import Delivery
import RelayModel
import Storage

/// Deliveries with all their attempts: list, show.
///
/// A receipt describes one attempt. The state of a delivery follows from its newest receipt, and
/// from its row if it is a retry or a dead letter. The row matters more: a delivery that was
/// redriven waits again, although its newest receipt says that it ended.
struct OneDeliveryAdministration: AdministrationTable {
    let registry: any ContainerRegistry & DeliveryRegistry & ListRegistry & ClientReceiptRegistry
    /// The halts in force: what is not sent, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// The shard of this store; `nil` if the store is the only one.
    let shard: String?

    /// The maximum number of receipts that one list reads.
    private static let receiptLimit = 10_000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listDeliveries, respond: list),
            AdministrationRoute(.listContainerDeliveries, respond: list),
            AdministrationRoute(.showDelivery, respond: show),
            AdministrationRoute(.showContainerDelivery, respond: show),
        ]
    }

    /// Returns the hint that the delivery may be in another shard, for a request without a
    /// container.
    private func elsewhere(_ request: RelayRequest) -> String {
        guard let shard, request.parameters["container"] == nil else { return "" }
        return ", or it belongs to another shard than \(shard): name its container or the shard"
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
            // No more than are still needed, so that the next page begins after the last receipt of
            // this one.
            let page = try await registry.listedReceipts(
                filter, before: place, PageBounds(rows: limit - found.count))
            looked += page.elements.count
            // The newest receipt of each delivery says how it stands.
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

    /// Returns the states of deliveries from their newest receipts and their rows.
    ///
    /// A delivery without a retry row can still have a receipt that says it is a retry. Then it was
    /// folded into a digest, has a newer receipt on an earlier page, or was ended without an
    /// attempt.
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

    /// Returns what clients reported about deliveries.
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
    /// Returns whether a delivery belongs to the container of the request; true if the request
    /// names none.
    ///
    /// The delivery's device determines its container.
    func isMeant(_ receipt: DeliveryReceipt, by request: RelayRequest) async throws -> Bool {
        guard request.parameters["container"] != nil else { return true }
        let key = try await registry.key(in: request)
        let serial = receipt.deviceSerial
        return try await registry.holders(ofDevices: [serial])[serial]?.owner.container == key
    }
}

extension RelayRequest {
    /// Returns the filter of receipts in the query parameters.
    ///
    /// - Throws: 400 that names the invalid parameter, 404 if the container does not exist.
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
        guard let key = try namedContainer() else {
            guard question.isEmpty else {
                throw APIError(
                    .badRequest,
                    "container: is required with user and record, because names are unique only "
                        + "within a container")
            }
            return filter
        }
        guard try await registry.container(key) != nil else {
            throw APIError(.notFound, "there is no container \(key)")
        }
        // Users and records imply their container, also where a device is no longer known.
        if question.isEmpty { filter.container = key }
        try await question.narrow(&filter, to: key, registry)
        return filter
    }

    /// Returns the container in the query parameters; `nil` if none is named.
    private func namedContainer() throws(APIError) -> ContainerKey? {
        let environment = try word("environment", of: ContainerEnvironment.self)
        guard let container: ContainerID = try parameter("container") else {
            guard environment == nil else {
                throw APIError(.badRequest, "environment: must be given together with container")
            }
            return nil
        }
        return ContainerKey(container: container, environment: environment ?? .development)
    }
}
