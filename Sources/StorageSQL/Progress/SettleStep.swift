import FoundationEssentials
import RelayModel
import Storage

/// Records one settling step: it moves the progress and stores the exceptions with it.
struct SettleStep: Sendable {
    private let step: SettledStep
    private let epoch: Int64
    private let block: ReceiptBlock?
    private let firings: FiringBlock?
    private let ranges: RangeSettling
    private let retries: [(retry: Retry, delivery: StoredDelivery)]
    private let inboxLimit: Int
    private let deadLetters: [(letter: DeadLetter, delivery: StoredDelivery)]

    /// The number of firings, errors and ends that the step records.
    var firingCount: Int { firings?.count ?? 0 }

    /// Encodes the step in advance, outside the writer's turn.
    init(_ step: SettledStep, epoch: Int64, inboxLimit: Int) throws(JSONContractError) {
        self.inboxLimit = inboxLimit
        self.step = step
        self.epoch = epoch
        block = ReceiptBlock(step.receipts)
        firings = FiringBlock(step.firings, ends: step.deadLetters)
        ranges = RangeSettling(step)
        retries = try step.retries.map { (retry) throws(JSONContractError) in
            (retry, try StoredDelivery(retry.delivery))
        }
        deadLetters = try step.deadLetters.map { (letter) throws(JSONContractError) in
            (letter, try StoredDelivery(letter.delivery))
        }
    }

    func run(in commit: inout OpenCommit) throws {
        try moveProgress(in: commit.db)
        try block?.insert(in: commit.db)
        try firings?.insert(in: commit.db)
        let deleteRetry = try commit.db.cachedStatement(
            sql: "DELETE FROM retry WHERE deliveryID = ?")
        // Retries are written before ended retries are deleted, because an end is final, whatever
        // else the step says.
        let containers = try containers(in: commit.db)
        var held = try HeldUse(
            among: retries.map(\.retry), of: containers, in: commit.db)
        for (retry, delivery) in retries {
            try save(retry, delivery, containers, &held, commit.db)
        }
        for id in step.endedRetries { try deleteRetry.execute(arguments: [id.stored]) }
        for (letter, delivery) in deadLetters {
            // A delivery must be in one place only, or it would be counted twice.
            try deleteRetry.execute(arguments: [letter.delivery.delivery.id.stored])
            try save(letter, delivery, containers, commit.db)
        }
        // Badges are saved before dead tokens end devices, so that the badge of an ended device is
        // deleted with it.
        try saveBadges(containers, in: commit.db)
        try forgetDeadTokens(in: &commit)
        for place in step.places {
            let container = try Self.number(of: place.line.container, containers)
            try ThrottleRow(place).save(of: container, in: commit.db)
        }
        try ranges.run(in: commit.db)
        for (key, tally) in step.tallies {
            try commit.db.addToAccount(
                of: try Self.number(of: key, containers), owed: tally.owed,
                delivered: tally.delivered, seen: tally.seen)
        }
        try InboxStep.insert(step.inbox, perUser: inboxLimit, in: commit.db)
    }

    /// Returns the numbers of the containers that the step concerns.
    private func containers(in db: Database) throws -> [ContainerKey: Int64] {
        var keys = Set(step.tallies.keys)
        keys.formUnion(step.retries.map(\.delivery.delivery.container))
        keys.formUnion(step.deadLetters.map(\.delivery.delivery.container))
        keys.formUnion(step.badges.map(\.key.container))
        keys.formUnion(step.places.map(\.line.container))
        return try db.numbers(of: keys)
    }

    private static func number(
        of key: ContainerKey, _ containers: [ContainerKey: Int64]
    ) throws -> Int64 {
        guard let number = containers[key] else { throw StorageError.unknownContainer(key) }
        return number
    }

    private func moveProgress(in db: Database) throws {
        func receipts(_ outcome: DeliveryReceipt.Outcome) -> Int {
            step.receipts.count { $0.outcome == outcome }
        }
        let statement = try db.cachedStatement(
            sql: """
                UPDATE progress SET position = ?, "offset" = ?, accepted = accepted + ?,
                    deferred = deferred + ?, unregistered = unregistered + ?, dead = dead + ?
                WHERE shard = 0 AND position = ? AND "offset" = ? AND epoch = ?
                """)
        let count = try statement.executeCounting(arguments: [
            step.to.position.stored, Int64(step.to.offset), receipts(.accepted),
            receipts(.deferred), receipts(.unregistered), receipts(.dead),
            step.from.position.stored, Int64(step.from.offset), epoch,
        ])
        guard count == 1 else {
            throw StorageError.progressMoved(try ProgressMark(storedIn: db))
        }
    }

    private func save(
        _ retry: Retry, _ delivery: StoredDelivery, _ containers: [ContainerKey: Int64],
        _ held: inout HeldUse, _ db: Database
    ) throws {
        let container = try Self.number(of: delivery.owed.delivery.container, containers)
        if retry.reason.hold != nil {
            try HeldRow(retry, delivery).save(of: container, &held, in: db)
        } else {
            held.forgetSingle(retry, container)
            try RetryRow(retry, delivery).save(of: container, in: db)
        }
    }

    private func save(
        _ letter: DeadLetter, _ delivery: StoredDelivery, _ containers: [ContainerKey: Int64],
        _ db: Database
    ) throws {
        let container = try Self.number(of: delivery.owed.delivery.container, containers)
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO deadLetter
                    (container, deliveryID, position, "offset", subscriptionSerial, deviceSerial,
                    body, owner, attempts, status, reason, endedAt)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                \(DeadLetter.replacing)
                """)
        try statement.execute(
            arguments: delivery.columns(of: container)
                + [Int64(letter.attempts), Int64(letter.status), letter.reason, letter.at.stored])
    }

    private func forgetDeadTokens(in commit: inout OpenCommit) throws {
        let tokens = Dictionary(grouping: step.deadTokens, by: \.container)
        for container in tokens.keys.sorted(by: { $0.description < $1.description }) {
            let dead = tokens[container] ?? []
            let now = step.receipts.map(\.at).max() ?? dead.map(\.since).max()
            guard let now, let known = try commit.db.containerIfKnown(container) else { continue }
            try DeviceStep(container: known, now: now).forget(dead, in: &commit)
        }
    }

    private func saveBadges(_ containers: [ContainerKey: Int64], in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO badge (container, deviceID, owner, badge)
                SELECT ?1, ?2, id, ?4 FROM user WHERE container = ?1 AND name = ?3
                ON CONFLICT (container, deviceID, owner) DO UPDATE SET badge = excluded.badge
                """)
        for (holder, number) in step.badges {
            guard let container = containers[holder.container] else { continue }
            try statement.execute(arguments: [
                container, holder.deviceID.rawValue, holder.owner.rawValue, max(0, number),
            ])
        }
    }
}

extension OwedDelivery {
    /// Creates a delivery from the columns that retries and dead letters share.
    init(_ stored: StoredRow) throws {
        do {
            self.init(
                try Delivery(storedForm: try stored.json("body")),
                subscriptionSerial: stored.number("subscriptionSerial"),
                deviceSerial: stored.number("deviceSerial"))
        } catch is JSONContractError {
            throw stored.damage("body")
        }
    }
}

extension Retry {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "retry")
        self.init(
            delivery: try OwedDelivery(stored),
            attempts: UInt16(clamping: row["attempts"] as Int64),
            dueAt: stored.moment("dueAt"), reason: WaitReason(stored: row["reason"]))
    }
}

extension DeadLetter {
    /// The conflict clause that replaces an existing dead letter of the delivery.
    static let replacing = """
        ON CONFLICT (deliveryID) DO UPDATE SET container = excluded.container,
            position = excluded.position, "offset" = excluded."offset",
            subscriptionSerial = excluded.subscriptionSerial,
            deviceSerial = excluded.deviceSerial, body = excluded.body, owner = excluded.owner,
            attempts = excluded.attempts, status = excluded.status, reason = excluded.reason,
            endedAt = excluded.endedAt
        """

    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "deadLetter")
        self.init(
            delivery: try OwedDelivery(stored),
            attempts: UInt16(clamping: row["attempts"] as Int64),
            status: UInt16(clamping: row["status"] as Int64), reason: row["reason"],
            at: stored.moment("endedAt"))
    }
}
