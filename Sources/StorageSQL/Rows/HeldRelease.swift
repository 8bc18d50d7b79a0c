import RelayModel
import Storage

/// The group that a held delivery belongs to: one subscription and one device of a user.
struct HeldGroup {
    let owner: String
    let subscription: String
    let device: String

    init(owner: String, subscription: String, device: String) {
        self.owner = owner
        self.subscription = subscription
        self.device = device
    }

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

    /// Returns the name of a subscription in the columns of held deliveries.
    static func subscription(_ id: SubscriptionID, in database: DatabaseScope?) -> String {
        "\(database?.rawValue ?? "")/\(id.rawValue)"
    }
}

/// Makes held deliveries due, because the settings that held them were edited.
struct HeldRelease {
    let container: Int64
    let owner: String
    let now: Timestamp

    /// What happens to an open digest that the subscription asked for.
    enum OpenDigests {
        /// It becomes due at once, like the rest.
        case end
        /// It keeps its due time.
        case stay
        /// It becomes due this many seconds after its first delivery, or now if that moment has
        /// passed.
        case last(seconds: Int64)
    }

    /// Releases the held deliveries of one subscription to all of its owner's devices.
    func release(
        _ subscription: SubscriptionID, in scope: DatabaseScope, _ digests: OpenDigests,
        _ db: Database
    ) throws {
        let name = HeldGroup.subscription(subscription, in: scope)
        try release("heldSubscription", "subscription", name, digests, db)
    }

    /// Releases the held deliveries of all subscriptions to one device.
    func release(_ device: DeviceID, _ digests: OpenDigests, _ db: Database) throws {
        try release("heldDevice", "device", device.rawValue, digests, db)
    }

    private func release(
        _ ofRetry: String, _ ofDigest: String, _ name: String, _ digests: OpenDigests,
        _ db: Database
    ) throws {
        let arguments: StatementArguments = [container, owner, name, now.stored]
        try db.cachedStatement(
            sql: """
                UPDATE retry SET dueAt = ?4, decidedAt = ?4
                WHERE container = ?1 AND heldOwner = ?2 AND \(ofRetry) = ?3 AND dueAt > ?4
                """
        ).execute(arguments: arguments)
        let unlessKept = if case .end = digests { "" } else { "AND reason <> 'digest'" }
        try db.cachedStatement(
            sql: """
                UPDATE digest SET dueAt = ?4, decidedAt = ?4
                WHERE container = ?1 AND owner = ?2 AND \(ofDigest) = ?3 AND closedAt IS NULL
                    AND dueAt > ?4 \(unlessKept)
                """
        ).execute(arguments: arguments)
        guard case .last(let seconds) = digests else { return }
        let span = now.advanced(by: .seconds(seconds)).stored - now.stored
        // A digest that was opened in the future was opened before the clock was set back.
        try db.cachedStatement(
            sql: """
                UPDATE digest SET dueAt = max(?4, min(openedAt, ?4) + ?5), decidedAt = ?4
                WHERE container = ?1 AND owner = ?2 AND \(ofDigest) = ?3 AND closedAt IS NULL
                    AND dueAt > ?4 AND reason = 'digest'
                """
        ).execute(arguments: arguments + [span])
    }
}
