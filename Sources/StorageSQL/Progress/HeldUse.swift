import FoundationEssentials
import RelayModel
import Storage

/// How many deliveries users have held, as far as one step needs to know.
///
/// The limit per user exists because a user with ten thousand subscriptions and a thousand devices
/// would otherwise have a row or digest for each pair. Each user is counted once for a step, so the
/// last step before the limit may exceed it.
struct HeldUse {
    private struct User: Hashable {
        let container: Int64
        let owner: UserID
    }

    /// One subscription and one device of a user.
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

    /// The digests that deliveries of a user are put into.
    private enum Digests {
        /// Each subscription has its own digest for each device.
        case own
        /// There are too many digests.
        ///
        /// A delivery without an open digest goes to the digest of another subscription for the
        /// same device.
        case shared([DeviceID: String])
    }

    /// The deliveries whose subscription or device was edited meanwhile.
    let outdated: Set<DeliveryID>
    /// The deliveries with a row of their own, for every pair of subscription and device that the
    /// step may hold deliveries for.
    private var singles: [Place: Set<DeliveryID>] = [:]
    private var fullness: [User: Bool] = [:]
    private var digests: [User: Digests] = [:]

    /// Looks up the state of all pairs that `retries` may hold deliveries for in one go, because
    /// over a network each single query would take as long as all of them together.
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

    /// Returns whether so many deliveries have rows of their own that this one, which has none,
    /// gets none.
    func isOverfull(with retry: Retry, _ container: Int64) -> Bool {
        let own = singles[place(of: retry, container), default: []]
        return own.count >= Limits.maximumHeldDeliveries
            && !own.contains(retry.delivery.delivery.id)
    }

    /// Records that a delivery has its own row.
    ///
    /// A delivery that waits for a connection does not count.
    mutating func noteSingle(_ retry: Retry, _ container: Int64) {
        guard retry.reason.hold != .connected else { return forgetSingle(retry, container) }
        singles[place(of: retry, container)]?.insert(retry.delivery.delivery.id)
    }

    /// Records that a delivery has no row, or has a row that does not count as held.
    mutating func forgetSingle(_ retry: Retry, _ container: Int64) {
        guard !singles.isEmpty else { return }
        singles[place(of: retry, container)]?.remove(retry.delivery.delivery.id)
    }

    private func place(of retry: Retry, _ container: Int64) -> Place {
        Place(retry.delivery.delivery, container)
    }

    /// Returns whether a user has the maximum number of held rows, over all subscriptions and
    /// devices.
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

    /// Returns the subscription whose digest takes the delivery: its own one, unless the user has
    /// too many digests.
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
