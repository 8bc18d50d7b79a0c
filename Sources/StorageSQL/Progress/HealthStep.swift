import RelayModel
import Storage

/// A number of firing blocks, and their sums.
struct HealthStep: Sendable {
    /// The number of subscriptions in one transaction, so that settling steps can run in between.
    private static let subscriptionsAtATime = 2000
    /// The approximate maximum of firings added up in one transaction, so that they fit in memory.
    private static let firingsAtATime = 262_144

    private var sums: [UInt64: SubscriptionHealth] = [:]
    private var blocks = 0
    private var first: Int64 = 0
    private var last: Int64 = 0
    /// The number of firings, errors and ends in the blocks.
    private(set) var count = 0

    /// Whether the limits may have ended the reading before the last block.
    var isCut: Bool { sums.count >= Self.subscriptionsAtATime || count >= Self.firingsAtATime }

    /// Adds up the oldest blocks, each one completely.
    init(_ db: Database) throws {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT id, count, body FROM firingBlock ORDER BY id")
        while sums.count < Self.subscriptionsAtATime, count < Self.firingsAtATime,
            let row = try rows.next()
        {
            try FiringBlock.add(row, to: &sums)
            blocks += 1
            last = row["id"]
            if blocks == 1 { first = last }
            count += row["count"] as Int
        }
    }

    /// Replaces the blocks by their sums.
    func run(in db: Database) throws {
        // The bounds of the range keep the statement from walking over rows that were deleted
        // earlier and may still lie in the table.
        let deleted = try db.cachedStatement(
            sql: "DELETE FROM firingBlock WHERE id >= ? AND id <= ?"
        ).executeCounting(arguments: [first, last])
        guard deleted == blocks else {
            throw StorageError.damaged(
                path: "firingBlock", reason: "blocks were removed while they were added up")
        }
        let update = try db.cachedStatement(sql: Self.updating)
        let insert = try db.cachedStatement(sql: Self.inserting)
        // In the order of the table, because neighbouring rows lie on one page.
        for (serial, health) in sums.sorted(by: { $0.key < $1.key }) {
            let arguments = health.arguments(serial)
            // The update adds to an existing row, and the insert then does nothing. Running both
            // avoids waiting for the answer which one applies.
            try update.execute(arguments: arguments)
            try insert.execute(arguments: arguments)
        }
    }

    private static let columns = """
        serial, fired, firedPosition, firedAt, noDevice, origin, merged, unreachedReason,
        unreachedPosition, unreachedAt, undelivered, undeliveredReason, undeliveredPosition,
        undeliveredAt, errors, errorPosition, errorAt
        """

    /// A subscription that has been deleted meanwhile has no health any more.
    private static let inserting = """
        INSERT INTO subscriptionHealth (\(columns))
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
        WHERE EXISTS (SELECT 1 FROM subscription WHERE serial = ?1)
            OR EXISTS (SELECT 1 FROM disabledSubscription WHERE serial = ?1)
        ON CONFLICT (serial) DO NOTHING
        """

    /// Ranges finish after later changes of the log, so the last event is the one with the highest
    /// position.
    private static let updating = """
        UPDATE subscriptionHealth SET
            fired = fired + ?2,
            firedAt = CASE WHEN ?3 > coalesce(firedPosition, 0) THEN ?4 ELSE firedAt END,
            firedPosition = max(coalesce(firedPosition, ?3), coalesce(?3, firedPosition)),
            noDevice = noDevice + ?5, origin = origin + ?6, merged = merged + ?7,
            unreachedReason = CASE WHEN ?9 > coalesce(unreachedPosition, 0)
                THEN ?8 ELSE unreachedReason END,
            unreachedAt = CASE WHEN ?9 > coalesce(unreachedPosition, 0)
                THEN ?10 ELSE unreachedAt END,
            unreachedPosition = max(coalesce(unreachedPosition, ?9),
                coalesce(?9, unreachedPosition)),
            undelivered = undelivered + ?11,
            undeliveredReason = coalesce(?12, undeliveredReason),
            undeliveredPosition = coalesce(?13, undeliveredPosition),
            undeliveredAt = coalesce(?14, undeliveredAt),
            errors = errors + ?15,
            errorAt = CASE WHEN ?16 > coalesce(errorPosition, 0) THEN ?17 ELSE errorAt END,
            errorPosition = max(coalesce(errorPosition, ?16), coalesce(?16, errorPosition))
        WHERE serial = ?1
        """
}

private extension SubscriptionHealth {
    func arguments(_ serial: UInt64) -> StatementArguments {
        [
            serial.stored, fired, lastFired?.position.stored, lastFired?.at.stored,
            unreached[.noDevice] ?? 0, unreached[.origin] ?? 0, unreached[.merged] ?? 0,
            lastUnreached.map { Int64($0.detail.rawValue) }, lastUnreached?.position.stored,
            lastUnreached?.at.stored, undelivered, lastUndelivered?.detail,
            lastUndelivered?.position.stored, lastUndelivered?.at.stored, errors,
            lastError?.position.stored, lastError?.at.stored,
        ]
    }
}

extension SubscriptionHealth {
    init(row: Row) {
        self.init()
        func event<Detail>(
            _ position: String, _ at: String, _ detail: Detail?
        ) -> Event<Detail>? {
            guard let detail, let position = row[position] as Int64?, let at = row[at] as Int64?
            else { return nil }
            return Event(
                position: LogPosition(stored: position), at: Timestamp(stored: at),
                detail: detail)
        }
        fired = row["fired"]
        lastFired = event("firedPosition", "firedAt", Nothing())
        for (reason, column) in [
            (UnreachedFiring.Reason.noDevice, "noDevice"), (.origin, "origin"),
            (.merged, "merged"),
        ] {
            let count: Int = row[column]
            if count > 0 { unreached[reason] = count }
        }
        let reason = (row["unreachedReason"] as Int64?)
            .flatMap { UnreachedFiring.Reason(rawValue: UInt8(clamping: $0)) }
        lastUnreached = event("unreachedPosition", "unreachedAt", reason)
        undelivered = row["undelivered"]
        lastUndelivered = event(
            "undeliveredPosition", "undeliveredAt", row["undeliveredReason"] as String?)
        errors = row["errors"]
        lastError = event("errorPosition", "errorAt", Nothing())
    }
}
