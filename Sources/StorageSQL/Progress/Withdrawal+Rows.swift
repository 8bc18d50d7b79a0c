import RelayModel
import Storage

extension Withdrawal {
    /// A delivery with the number of its container.
    private typealias Known = (owed: OwedDelivery, container: Int64)

    /// What the registry says of deliveries: those that it withdraws, and by the serials of earlier
    /// registrations, which ones took their place.
    typealias Judged = (withdrawals: [DeliveryID: Withdrawal], heirs: [UInt64: UInt64])

    /// Returns which of `deliveries` the current registry withdraws, and why.
    ///
    /// The check compares the token, not the version of the device, because a new registration by
    /// the same user ends a version too. It compares the subscription's ID, because an edit ends
    /// the version that fired.
    static func among(
        _ deliveries: [OwedDelivery], in db: Database
    ) throws -> Judged {
        let containers = try db.numbers(of: deliveries.map(\.delivery.container))
        var found: [DeliveryID: Withdrawal] = [:]
        var known: [Known] = []
        for owed in deliveries {
            if let container = containers[owed.delivery.container] {
                known.append((owed, container))
            } else {
                found[owed.delivery.id] = .device
            }
        }
        var heirs: [UInt64: UInt64] = [:]
        for (one, row) in try devices(of: known, in: db) {
            if let withdrawal = byDevice(one.owed.delivery, row) {
                found[one.owed.delivery.id] = withdrawal
            } else if let serial = row.map({ UInt64(clamping: $0[2] as Int64) }),
                serial != one.owed.deviceSerial
            {
                heirs[one.owed.deviceSerial] = serial
            }
        }
        let rest = known.filter { found[$0.owed.delivery.id] == nil }
        for id in try withoutSubscription(rest, in: db) { found[id] = .subscription }
        return (found, heirs)
    }

    /// Returns the devices that have the tokens of `deliveries` now.
    private static func devices(
        of deliveries: [Known], in db: Database
    ) throws -> Zip2Sequence<[Known], [Row?]> {
        // Deliveries to couriers are not checked here: the courier's queue looks up the device in
        // the transaction that queues.
        let pushed = deliveries.filter { $0.owed.delivery.gateway == .apns }
        let statement = try db.cachedStatement(
            sql: """
                SELECT user.name, device.gatewayEnvironment, device.serial
                FROM device JOIN user ON user.id = device.owner
                WHERE device.container = ? AND device.token = ? AND device.ended IS NULL
                """)
        let asked = pushed.map { (one) -> StatementArguments in
            [one.container, one.owed.delivery.token.rawValue]
        }
        return zip(pushed, try Row.fetchFirsts(statement, arguments: asked))
    }

    /// Returns why the device that has the delivery's token now withdraws the delivery, or `nil` if
    /// it does not.
    private static func byDevice(_ delivery: Delivery, _ row: Row?) -> Withdrawal? {
        guard let row else { return .device }
        // Compared by bytes, as users are distinguished.
        let owner: String = row[0]
        guard owner.utf8.elementsEqual(delivery.owner.rawValue.utf8) else { return .token }
        // If the environments differ, the gateway's host for the delivery's environment would
        // report the token as unknown.
        return row[1] as String == delivery.gatewayEnvironment.rawValue ? nil : .device
    }

    private static func withoutSubscription(
        _ deliveries: [Known], in db: Database
    ) throws -> [DeliveryID] {
        // Once subscriptions are skipped, because they end by firing, and so are rows of an earlier
        // version that do not say whether they are once.
        let judged = deliveries.filter { $0.owed.delivery.isOnce == false }
        let version = try db.cachedStatement(
            sql: "SELECT 1 FROM subscription WHERE serial = ? AND ended IS NULL")
        let serials = judged.map { (one) -> StatementArguments in
            [one.owed.subscriptionSerial.stored]
        }
        let live = try Row.fetchFirsts(version, arguments: serials)
        let ended = zip(judged, live).compactMap { one, row in row == nil ? one : nil }
        let successor = try db.cachedStatement(
            sql: """
                SELECT 1 FROM user JOIN subscription ON subscription.owner = user.id
                WHERE user.container = ? AND user.name = ?
                    AND subscription.database IN ('public', 'private', 'shared')
                    AND subscription.subscriptionID = ? AND subscription.ended IS NULL
                """)
        let names = ended.map { (one) -> StatementArguments in
            let delivery = one.owed.delivery
            return [one.container, delivery.owner.rawValue, delivery.subscriptionID.rawValue]
        }
        let successors = try Row.fetchFirsts(successor, arguments: names)
        return zip(ended, successors).compactMap { one, row in
            row == nil ? one.owed.delivery.id : nil
        }
    }
}
