import RelayModel
import Storage

/// How much users have held back, as far as one step asks: a user with ten thousand subscriptions
/// and a thousand devices would have a row, or a digest, for each of both.
///
/// Each user is looked at once for a step, so that the last step before the bound may go beyond it.
struct HeldUse {
    private struct User: Hashable {
        let container: Int64
        let owner: UserID
    }

    /// Where what is told together goes.
    private enum Digests {
        /// Each subscription has one for each device.
        case own
        /// There are too many: what has none yet goes to another subscription's, by the device.
        case shared([DeviceID: String])
    }

    /// Those whose hold was edited meanwhile.
    let outdated: Set<DeliveryID>
    private var fullness: [User: Bool] = [:]
    private var digests: [User: Digests] = [:]

    init(outdated: Set<DeliveryID>) {
        self.outdated = outdated
    }

    /// Whether a user has as many rows as one may have, each for itself, whatever they are for.
    mutating func isFull(
        _ delivery: Delivery, _ container: Int64, in db: Database
    ) throws -> Bool {
        let user = User(container: container, owner: delivery.owner)
        if let known = fullness[user] { return known }
        let count = try Int.fetchOne(
            try db.cachedStatement(sql: Self.rowsStatement),
            arguments: [
                container, delivery.owner.rawValue, WaitReason.held(.connected).stored,
                Limits.maximumHeldDeliveriesOfUser,
            ])
        let found = (count ?? 0) >= Limits.maximumHeldDeliveriesOfUser
        fullness[user] = found
        return found
    }

    /// The subscription in whose digest a delivery is told: its own, unless the user has too many.
    mutating func subscription(
        of delivery: Delivery, _ group: HeldGroup, _ container: Int64, in db: Database
    ) throws -> String {
        let user = User(container: container, owner: delivery.owner)
        let found: Digests
        if let known = digests[user] {
            found = known
        } else {
            found = try place(of: delivery, container, in: db)
            digests[user] = found
        }
        guard case .shared(var subscriptions) = found else { return group.subscription }
        if try hasOwn(group, container, in: db) { return group.subscription }
        let subscription = subscriptions[delivery.deviceID] ?? group.subscription
        subscriptions[delivery.deviceID] = subscription
        digests[user] = .shared(subscriptions)
        return subscription
    }

    private func place(
        of delivery: Delivery, _ container: Int64, in db: Database
    ) throws -> Digests {
        let count = try Int.fetchOne(
            try db.cachedStatement(sql: Self.digestsStatement),
            arguments: [
                container, delivery.owner.rawValue, Limits.maximumHeldDeliveriesOfUser,
            ])
        guard (count ?? 0) >= Limits.maximumHeldDeliveriesOfUser else { return .own }
        let rows = try Row.fetchAll(
            try db.cachedStatement(sql: Self.devicesStatement),
            arguments: [container, delivery.owner.rawValue])
        var subscriptions: [DeviceID: String] = [:]
        for row in rows {
            guard let device = DeviceID(rawValue: row["device"]) else { continue }
            subscriptions[device] = row["subscription"]
        }
        return .shared(subscriptions)
    }

    private func hasOwn(_ group: HeldGroup, _ container: Int64, in db: Database) throws -> Bool {
        try Int.fetchOne(
            try db.cachedStatement(sql: Self.ownStatement),
            arguments: [container, group.owner, group.subscription, group.device]) != nil
    }

    static let rowsStatement = """
        SELECT count(*) FROM (
            SELECT 1 FROM retry INDEXED BY retryHeld
            WHERE container = ? AND heldOwner = ? AND reason <> ? LIMIT ?) AS held
        """

    static let digestsStatement = """
        SELECT count(*) FROM (
            SELECT 1 FROM digest INDEXED BY digestOpen
            WHERE container = ? AND owner = ? AND closedAt IS NULL LIMIT ?) AS held
        """

    private static let devicesStatement = """
        SELECT device, min(subscription) AS subscription FROM digest INDEXED BY digestOpen
        WHERE container = ? AND owner = ? AND closedAt IS NULL GROUP BY device
        """

    private static let ownStatement = """
        SELECT 1 FROM digest INDEXED BY digestOpen
        WHERE container = ? AND owner = ? AND subscription = ? AND device = ?
            AND closedAt IS NULL
        """
}
