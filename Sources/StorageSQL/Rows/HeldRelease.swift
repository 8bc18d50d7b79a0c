import RelayModel
import Storage

/// For whose sake a delivery is held back: what one subscription owes one device.
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

    /// What becomes of a digest that was asked for and has not ended.
    enum OpenDigests {
        /// It is due as the rest is.
        case end
        /// It ends when it was to end.
        case stay
        /// It ends so many seconds after its first, or now if that is over.
        case last(seconds: Int64)
    }

    /// What one subscription owes its owner's devices.
    func release(
        _ subscription: SubscriptionID, in scope: DatabaseScope, _ digests: OpenDigests,
        _ db: Database
    ) throws {
        let name = HeldGroup.subscription(subscription, in: scope)
        try release("heldSubscription", "subscription", name, digests, db)
    }

    /// What is owed to one device by all subscriptions.
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
        // One that began in the future is of a clock that was set back since.
        try db.cachedStatement(
            sql: """
                UPDATE digest SET dueAt = max(?4, min(openedAt, ?4) + ?5), decidedAt = ?4
                WHERE container = ?1 AND owner = ?2 AND \(ofDigest) = ?3 AND closedAt IS NULL
                    AND dueAt > ?4 AND reason = 'digest'
                """
        ).execute(arguments: arguments + [span])
    }
}
