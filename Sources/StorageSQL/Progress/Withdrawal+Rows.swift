import RelayModel
import Storage

extension Withdrawal {
    /// A delivery, and the number of its container.
    private typealias Known = (owed: OwedDelivery, container: Int64)

    /// Which of `deliveries` are withdrawn by what `db` holds now, and why; the others stand.
    ///
    /// By the token and not by the version of the device, which a new registration of the same user
    /// ends too; and by the subscription's ID, because an edit ends the version that fired.
    static func among(
        _ deliveries: [OwedDelivery], in db: Database
    ) throws -> [DeliveryID: Withdrawal] {
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
        for (id, withdrawal) in try byDevices(known, in: db) { found[id] = withdrawal }
        let rest = known.filter { found[$0.owed.delivery.id] == nil }
        for id in try withoutSubscription(rest, in: db) { found[id] = .subscription }
        return found
    }

    private static func byDevices(
        _ deliveries: [Known], in db: Database
    ) throws -> [(DeliveryID, Withdrawal)] {
        // The courier's queue looks for the device itself, in the transaction that queues.
        let pushed = deliveries.filter { $0.owed.delivery.gateway == .apns }
        let statement = try db.cachedStatement(
            sql: """
                SELECT user.name, device.gatewayEnvironment
                FROM device JOIN user ON user.id = device.owner
                WHERE device.container = ? AND device.token = ? AND device.ended IS NULL
                """)
        let asked = pushed.map { (one) -> StatementArguments in
            [one.container, one.owed.delivery.token.rawValue]
        }
        let rows = try Row.fetchFirsts(statement, arguments: asked)
        return zip(pushed, rows).compactMap { one, row in
            byDevice(one.owed.delivery, row).map { (one.owed.delivery.id, $0) }
        }
    }

    /// Why a delivery is withdrawn by the device that has its token now.
    private static func byDevice(_ delivery: Delivery, _ row: Row?) -> Withdrawal? {
        guard let row else { return .device }
        // By their bytes, as users are told apart.
        let owner: String = row[0]
        guard owner.utf8.elementsEqual(delivery.owner.rawValue.utf8) else { return .token }
        // By the host of the other environment the gateway would call the token unknown.
        return row[1] as String == delivery.gatewayEnvironment.rawValue ? nil : .device
    }

    private static func withoutSubscription(
        _ deliveries: [Known], in db: Database
    ) throws -> [DeliveryID] {
        // A once subscription ends by firing; and what an earlier version kept does not say.
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
