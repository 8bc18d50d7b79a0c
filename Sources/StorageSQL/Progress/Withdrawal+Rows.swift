import RelayModel
import Storage

extension Withdrawal {
    /// Why `owed` is withdrawn by what `db` holds now; `nil` if it stands.
    ///
    /// By the token and not by the version of the device, which a new registration of the same user
    /// ends too; and by the subscription's ID, because an edit ends the version that fired.
    static func of(_ owed: OwedDelivery, in db: Database) throws -> Withdrawal? {
        guard let container = try db.containerIfKnown(owed.delivery.container)?.id else {
            return .device
        }
        if let withdrawal = try ofDevice(owed.delivery, container, in: db) { return withdrawal }
        return try isSubscriptionGone(owed, container, in: db) ? .subscription : nil
    }

    private static func ofDevice(
        _ delivery: Delivery, _ container: Int64, in db: Database
    ) throws -> Withdrawal? {
        // The courier's queue looks for the device itself, in the transaction that queues.
        guard delivery.gateway == .apns else { return nil }
        let statement = try db.cachedStatement(
            sql: """
                SELECT user.name, device.gatewayEnvironment
                FROM device JOIN user ON user.id = device.owner
                WHERE device.container = ? AND device.token = ? AND device.ended IS NULL
                """)
        let row = try Row.fetchOne(statement, arguments: [container, delivery.token.rawValue])
        guard let row else { return .device }
        if row[0] as String != delivery.owner.rawValue { return .token }
        // By the host of the other environment the gateway would call the token unknown.
        return row[1] as String == delivery.gatewayEnvironment.rawValue ? nil : .device
    }

    private static func isSubscriptionGone(
        _ owed: OwedDelivery, _ container: Int64, in db: Database
    ) throws -> Bool {
        // A once subscription ends by firing; and what an earlier version kept does not say.
        guard owed.delivery.isOnce == false else { return false }
        let version = try db.cachedStatement(
            sql: "SELECT 1 FROM subscription WHERE serial = ? AND ended IS NULL")
        let isLive = try Int.fetchOne(version, arguments: [owed.subscriptionSerial.stored]) != nil
        if isLive { return false }
        let successor = try db.cachedStatement(
            sql: """
                SELECT 1 FROM user JOIN subscription ON subscription.owner = user.id
                WHERE user.container = ? AND user.name = ?
                    AND subscription.database IN ('public', 'private', 'shared')
                    AND subscription.subscriptionID = ? AND subscription.ended IS NULL
                """)
        let arguments: StatementArguments = [
            container, owed.delivery.owner.rawValue, owed.delivery.subscriptionID.rawValue,
        ]
        return try Int.fetchOne(successor, arguments: arguments) == nil
    }
}
