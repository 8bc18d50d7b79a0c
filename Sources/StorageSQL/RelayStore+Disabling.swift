package import RelayModel
package import Storage

extension RelayStore {
    /// The number of set-aside changes after which a subscription is disabled.
    package static let strikesOfSubscription = SubscriptionStep.mostStrikes
    /// The maximum number of disabled subscriptions kept for one user, because they no longer count
    /// towards a quota.
    private static let mostDisabled = 1000

    package func setAside(_ entry: DearEntry, at now: Timestamp) async throws -> [UInt64] {
        try await write(changes: 1) { commit in
            // The change was set aside before a crash. All that follows was done in the same
            // transaction.
            guard try commit.quarantine(entry.position, because: entry.reason, at: now) else {
                return []
            }
            let container = try commit.container(entry.container)
            var disabled: [UInt64] = []
            for serial in entry.dearest
            where try Self.strike(serial, entry.position, in: commit.db) {
                try Self.disable(serial, of: container, entry, in: &commit, at: now)
                disabled.append(serial)
            }
            try Self.forgetOldest(beside: disabled, in: commit.db)
            return disabled
        }
    }

    package func positionsSetAside(after position: LogPosition) async throws -> Set<LogPosition> {
        try await read { db in
            Set(
                try Int64.fetchAll(
                    db, sql: "SELECT position FROM quarantine WHERE position > ?",
                    arguments: [position.stored]
                ).map { LogPosition(stored: $0) })
        }
    }

    package func disabledSubscriptions(
        of owner: SubscriptionOwner
    ) async throws -> [DisabledSubscription] {
        try await read { [unreadable] db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT disabledSubscription.*, user.name AS ownerName,
                        container.name AS containerName, container.environment
                    FROM container
                        JOIN user ON user.container = container.id
                        JOIN disabledSubscription ON disabledSubscription.owner = user.id
                    WHERE container.name = ? AND container.environment = ? AND user.name = ?
                        AND database = ?
                    ORDER BY subscriptionID
                    """,
                arguments: [
                    owner.container.container.rawValue, owner.container.environment.rawValue,
                    owner.user.rawValue, owner.database.rawValue,
                ])
            return try unreadable.readable(rows, in: "subscription") {
                try DisabledSubscription(row: $0)
            }
        }
    }

    /// Selects the disabled subscriptions of the container ?2 in the environment ?3, and only those
    /// of the user ?4 unless it is NULL.
    ///
    /// The query starts with the disabled subscriptions, because they are few and users may be
    /// millions.
    static let disabledOfContainer = """
        SELECT disabledSubscription.*, user.name AS ownerName,
            container.name AS containerName, container.environment
        FROM disabledSubscription
            CROSS JOIN user ON user.id = disabledSubscription.owner
            CROSS JOIN container ON container.id = user.container
        WHERE container.name = ?2 AND container.environment = ?3
            AND (?4 IS NULL OR user.name = ?4)
        """

    package func disabledPage(
        of container: ContainerKey, user: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DisabledSubscription> {
        try await read { [unreadable] db in
            let rows = try Row.fetchCursor(
                db, sql: "\(Self.disabledOfContainer) AND serial > ?1 ORDER BY serial",
                arguments: [
                    serial.stored, container.container.rawValue, container.environment.rawValue,
                    user?.rawValue,
                ])
            return try bounds.page(of: rows) { row in
                let subscription = try unreadable.value(of: row, in: "subscription") {
                    try DisabledSubscription(row: $0)
                }
                return (subscription, row.bytes(of: "body", "reason"))
            }
        }
    }

    /// Records that a change was set aside for an active subscription, and returns whether the
    /// subscription has reached the limit.
    private static func strike(
        _ serial: UInt64, _ position: LogPosition, in db: Database
    ) throws -> Bool {
        let count = try db.executeCounting(
            sql: """
                INSERT INTO dearStrike (subscription, position)
                SELECT serial, ? FROM subscription WHERE serial = ? AND ended IS NULL
                ON CONFLICT DO NOTHING
                """, arguments: [position.stored, serial.stored])
        guard count > 0 else { return false }
        let strikes = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM dearStrike WHERE subscription = ?",
            arguments: [serial.stored])
        return strikes ?? 0 >= strikesOfSubscription
    }

    /// Deletes the oldest disabled subscriptions of these subscriptions' owners beyond one page of
    /// a list.
    ///
    /// Without this limit, saving expensive conditions again and again would make the list grow
    /// forever.
    private static func forgetOldest(beside disabled: [UInt64], in db: Database) throws {
        var owners: Set<Int64> = []
        for serial in disabled {
            let owner = try Int64.fetchOne(
                db, sql: "SELECT owner FROM disabledSubscription WHERE serial = ?",
                arguments: [serial.stored])
            if let owner { owners.insert(owner) }
        }
        for owner in owners {
            try db.execute(
                sql: """
                    DELETE FROM disabledSubscription WHERE owner = ?1 AND serial IN (
                        SELECT serial FROM (
                            SELECT serial,
                                row_number() OVER (ORDER BY position DESC, serial DESC) AS place,
                                sum(\(db.dialect.bytes(of: "body")))
                                    OVER (ORDER BY position DESC, serial DESC) AS bytes
                            FROM disabledSubscription WHERE owner = ?1) AS kept
                        WHERE place > ?2 OR bytes > ?3)
                    """, arguments: [owner, mostDisabled, Limits.maximumPageBytes])
        }
    }

    /// Ends a subscription by a log entry, as its owner would, and keeps its last version.
    private static func disable(
        _ serial: UInt64, of container: StoredContainer, _ entry: DearEntry,
        in commit: inout OpenCommit, at now: Timestamp
    ) throws {
        let position = commit.next.stored
        try commit.db.execute(
            sql: """
                INSERT INTO disabledSubscription
                    (owner, database, subscriptionID, serial, body, activation, reason, position)
                SELECT owner, database, subscriptionID, serial, body, activation, ?, ?
                FROM subscription WHERE serial = ?
                ON CONFLICT (owner, database, subscriptionID) DO UPDATE SET
                    serial = excluded.serial, body = excluded.body,
                    activation = excluded.activation, reason = excluded.reason,
                    position = excluded.position
                """,
            arguments: [
                "its condition takes too many steps: \(strikesOfSubscription) changes were set "
                    + "aside for it, the last at position \(entry.position)", position,
                serial.stored,
            ])
        try commit.db.execute(
            sql: "UPDATE subscription SET ended = ? WHERE serial = ?",
            arguments: [position, serial.stored])
        let body = LogEntryBody.subscriptionDeleted(serial: serial)
        _ = try commit.append(body, storedBody: try body.storedBody(), in: container, at: now)
    }
}

extension DisabledSubscription {
    init(row: Row) throws {
        self.init(
            version: try SubscriptionVersion(row: row), reason: row["reason"],
            position: LogPosition(stored: row["position"]))
    }
}
