import RelayModel
import Storage

/// For whose sake a delivery is held back: what one subscription owes one device.
struct HeldGroup {
    let owner: String
    let subscription: String
    let device: String

    init(_ delivery: Delivery) {
        owner = delivery.owner.rawValue
        subscription = Self.subscription(delivery.subscriptionID, in: delivery.database)
        device = delivery.deviceID.rawValue
    }

    init(_ line: ThrottledLine) {
        owner = line.owner.rawValue
        subscription = Self.subscription(line.subscriptionID, in: line.database)
        device = line.deviceID.rawValue
    }

    /// How a subscription is named there.
    static func subscription(_ id: SubscriptionID, in database: DatabaseScope?) -> String {
        "\(database?.rawValue ?? "")/\(id.rawValue)"
    }
}

/// Makes what is held back due, because what held it back was edited.
struct HeldRelease {
    let container: Int64
    let owner: String
    let now: Timestamp

    /// What one subscription owes its owner's devices.
    func release(_ subscription: SubscriptionID, in scope: DatabaseScope, _ db: Database) throws {
        let name = HeldGroup.subscription(subscription, in: scope)
        for (table, columns) in Self.tables {
            try db.cachedStatement(
                sql: """
                    UPDATE \(table) SET dueAt = ?4, decidedAt = ?4
                    WHERE container = ?1 AND \(columns.owner) = ?2
                        AND \(columns.subscription) = ?3 AND \(columns.condition)
                    """
            ).execute(arguments: [container, owner, name, now.stored])
        }
    }

    /// What is owed to one device by all subscriptions.
    func release(_ device: DeviceID, _ db: Database) throws {
        for (table, columns) in Self.tables {
            try db.cachedStatement(
                sql: """
                    UPDATE \(table) SET dueAt = ?4, decidedAt = ?4
                    WHERE container = ?1 AND \(columns.owner) = ?2 AND \(columns.device) = ?3
                        AND \(columns.condition)
                    """
            ).execute(arguments: [container, owner, device.rawValue, now.stored])
        }
    }

    private struct Columns {
        let owner, subscription, device, condition: String
    }

    private static let tables = [
        (
            "retry",
            Columns(
                owner: "heldOwner", subscription: "heldSubscription", device: "heldDevice",
                condition: "dueAt > ?4")
        ),
        (
            "digest",
            Columns(
                owner: "owner", subscription: "subscription", device: "device",
                condition: "closedAt IS NULL AND dueAt > ?4")
        ),
    ]
}
