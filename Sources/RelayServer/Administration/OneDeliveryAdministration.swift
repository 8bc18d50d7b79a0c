import Delivery
import RelayModel
import Storage

/// Deliveries, each with all its attempts: list, show.
///
/// A receipt is of one attempt; what a delivery came to is said by the newest, and by the row that
/// it has if it waits or is dead: one that is redriven waits, and its newest receipt is of its end.
struct OneDeliveryAdministration: AdministrationTable {
    let registry: any Registry
    /// What waits, and why.
    let halts: @Sendable () -> [HaltInForce]

    /// Receipts that are looked at for one list.
    private static let receiptLimit = 10_000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute("GET", "/admin/1/deliveries", respond: list),
            AdministrationRoute("GET", "/admin/1/deliveries/{delivery}", respond: show),
        ]
    }

    /// What has become of a delivery.
    private enum Standing: String, CaseIterable {
        case delivered, waiting, dead

        init(_ outcome: DeliveryReceipt.Outcome) {
            self =
                switch outcome {
                case .accepted: .delivered
                case .deferred: .waiting
                case .unregistered, .dead: .dead
                }
        }
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
            among: newest.filter { Standing($0.outcome) == .dead }.map(\.deliveryID))
        let found = newest.lazy.map { receipt in
            (receipt, redriven.contains(receipt.deliveryID) ? .waiting : Standing(receipt.outcome))
        }.filter { wanted == nil || wanted == $0.1 }
        return RelayAnswer(json: [
            "deliveries": .array(found.prefix(limit).map { .object(Self.members($0, $1)) })
        ])
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
        var shown = Self.members(newest, Standing(newest.outcome))
        switch exception {
        case .retry(let retry):
            shown["state"] = .string(Standing.waiting.rawValue)
            shown["retry"] = retry.shown(
                among: halts(), at: request.receivedAt)
        case .deadLetter(let letter):
            shown["state"] = .string(Standing.dead.rawValue)
            shown["deadLetter"] = letter.json
        case nil: break
        }
        shown["receipts"] = .array(receipts.reversed().map(\.json))
        return RelayAnswer(json: .object(shown))
    }

    /// What the newest receipt says of the whole delivery, and where that stands.
    private static func members(
        _ newest: DeliveryReceipt, _ standing: Standing
    ) -> JSONObject {
        [
            "deliveryID": .string(newest.deliveryID.description),
            "state": .string(standing.rawValue),
            "position": .string(newest.ordinal.position.description),
            "offset": .integer(Int64(newest.ordinal.offset)),
            "subscriptionSerial": .string(String(newest.subscriptionSerial)),
            "deviceSerial": .string(String(newest.deviceSerial)),
            "attempts": .integer(Int64(newest.attempt)),
            "status": .integer(Int64(newest.status)), "reason": .string(newest.reason),
            "at": .string(newest.at.iso8601),
        ]
    }

    private static func standing(_ word: String) throws(APIError) -> Standing {
        guard let standing = Standing(rawValue: word) else {
            let words = Standing.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(
                .badRequest, "state: \"\(word.shortened)\" is unknown; allowed are \(words)")
        }
        return standing
    }
}
