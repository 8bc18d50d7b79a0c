import FoundationEssentials
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

    /// What one subscription owes one device.
    private struct Place: Hashable {
        let container: Int64
        let owner: UserID
        let database: DatabaseScope?
        let subscription: SubscriptionID
        let device: DeviceID

        init(_ delivery: Delivery, _ container: Int64) {
            self.container = container
            owner = delivery.owner
            database = delivery.database
            subscription = delivery.subscriptionID
            device = delivery.deviceID
        }
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
    /// What has a row for itself, of all that the step may hold back so.
    private var singles: [Place: Set<DeliveryID>] = [:]
    private var fullness: [User: Bool] = [:]
    private var digests: [User: Digests] = [:]

    /// Looks at once at all that `retries` may hold back: over a network each question would take
    /// as long as all of them.
    init(
        among retries: [Retry], of containers: [ContainerKey: Int64], in db: Database
    ) throws {
        outdated = try HeldRow.outdated(among: retries, in: db)
        var asked: [(place: Place, arguments: StatementArguments)] = []
        for retry in retries {
            let delivery = retry.delivery.delivery
            guard let hold = retry.reason.hold, hold != .connected, !hold.isTogether,
                let container = containers[delivery.container]
            else { continue }
            let place = Place(delivery, container)
            guard singles.updateValue([], forKey: place) == nil else { continue }
            let group = HeldGroup(delivery)
            let arguments: StatementArguments = [
                container, group.owner, group.subscription, group.device,
                WaitReason.held(.connected).stored, Limits.maximumHeldDeliveries,
            ]
            asked.append((place, arguments))
        }
        guard !asked.isEmpty else { return }
        let found = try Row.fetchAlls(
            try db.cachedStatement(sql: Self.singlesStatement), arguments: asked.map(\.arguments))
        for (index, rows) in found.enumerated() {
            singles[asked[index].place] = Set(
                rows.compactMap { DeliveryID(stored: $0["deliveryID"]) })
        }
    }

    /// Whether so many have a row for themselves that this one, which has none, gets none.
    func isOverfull(with retry: Retry, _ container: Int64) -> Bool {
        let own = singles[place(of: retry, container), default: []]
        return own.count >= Limits.maximumHeldDeliveries
            && !own.contains(retry.delivery.delivery.id)
    }

    /// Notes that a delivery has its row; one that waits for a connection is not counted.
    mutating func noteSingle(_ retry: Retry, _ container: Int64) {
        guard retry.reason.hold != .connected else { return forgetSingle(retry, container) }
        singles[place(of: retry, container)]?.insert(retry.delivery.delivery.id)
    }

    /// Notes that a delivery has no row, or one for which it is not held back.
    mutating func forgetSingle(_ retry: Retry, _ container: Int64) {
        guard !singles.isEmpty else { return }
        singles[place(of: retry, container)]?.remove(retry.delivery.delivery.id)
    }

    private func place(of retry: Retry, _ container: Int64) -> Place {
        Place(retry.delivery.delivery, container)
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

    private static let singlesStatement = """
        SELECT deliveryID FROM retry INDEXED BY retryHeld
        WHERE container = ? AND heldOwner = ? AND heldSubscription = ? AND heldDevice = ?
            AND reason <> ? LIMIT ?
        """

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
