import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func kindness(
        among deliveries: [OwedDelivery]
    ) async throws -> [DeliveryID: Kindness] {
        guard !deliveries.isEmpty else { return [:] }
        return try await read { try Kindness.among(deliveries, in: $0) }
    }

    package func throttlePasts(
        of lines: [ThrottledLine], at now: Timestamp
    ) async throws -> [ThrottlePast] {
        guard !lines.isEmpty else { return [] }
        return try await read { try ThrottlePast.among(lines, at: now, in: $0) }
    }

    package var heldReleased: AsyncStream<Void> { releases.stream }

    package func release(
        _ deliveries: [DeliveryID], heldFor reason: HoldReason, at now: Timestamp
    ) async throws {
        guard !deliveries.isEmpty else { return }
        try await write(changes: deliveries.count) { commit in
            let release = try commit.db.cachedStatement(
                sql: """
                    UPDATE retry SET dueAt = ?1, decidedAt = ?1
                    WHERE deliveryID = ?2 AND reason = ?3 AND dueAt > ?1
                    """)
            for id in deliveries {
                try release.execute(arguments: [
                    now.stored, id.stored, WaitReason.held(reason).stored,
                ])
            }
        }
    }

    // MARK: Digests

    package func dueDigests(at now: Timestamp, limit: Int) async throws -> [Digest] {
        let (due, damaged) = try await read { [unreadable] db in
            let rows = try Row.fetchAll(
                try db.cachedStatement(
                    sql: """
                        SELECT * FROM digest WHERE closedAt IS NULL AND dueAt <= ?
                        ORDER BY dueAt, id LIMIT ?
                        """), arguments: [now.stored, max(0, limit)])
            var damaged: [Int64] = []
            let due = try rows.compactMap { row in
                let digest = try unreadable.value(of: row, in: "digest") { try Digest(row: $0) }
                if digest == nil { damaged.append(row["id"]) }
                return digest
            }
            return (due, damaged)
        }
        if !damaged.isEmpty { try await putOff(damaged, at: now) }
        return due
    }

    /// Postpones unreadable digests for a day.
    ///
    /// They stay open and keep their counts.
    private func putOff(_ digests: [Int64], at now: Timestamp) async throws {
        let later = now.advanced(by: .seconds(86_400)).stored
        try await write(changes: digests.count) { commit in
            for id in digests {
                try commit.db.execute(
                    sql: "UPDATE digest SET dueAt = ? WHERE id = ?", arguments: [later, id])
            }
        }
    }

    package func nextDigestDue() async throws -> Timestamp? {
        try await read { db in
            try Int64.fetchOne(
                try db.cachedStatement(
                    sql: "SELECT min(dueAt) FROM digest WHERE closedAt IS NULL")
            ).map { Timestamp(stored: $0) }
        }
    }

    package func close(_ digests: [ClosingDigest], at now: Timestamp) async throws -> Int {
        let rows = try digests.map { closing in
            let retry = Retry(
                delivery: closing.delivery, attempts: 0, dueAt: now, reason: .together)
            return (
                digest: closing.digest,
                retry: try RetryRow(retry, StoredDelivery(closing.delivery))
            )
        }
        return try await write(changes: max(1, rows.count)) { commit in
            try Self.close(rows, at: now, in: commit.db)
        }
    }

    /// Closes the digests that have not changed since they were read, and makes a retry of each.
    ///
    /// The statements run as one batch.
    static func close(
        _ digests: [(digest: Digest, retry: RetryRow)], at now: Timestamp, in db: Database
    ) throws -> Int {
        let close = try db.cachedStatement(
            sql: """
                UPDATE digest SET closedAt = ?, body = ''
                WHERE id = ? AND deliveries = ? AND closedAt IS NULL RETURNING container
                """)
        let closed = try Row.fetchFirsts(
            close,
            arguments: digests.map { digest, _ -> StatementArguments in
                [now.stored, digest.id, digest.deliveries]
            })
        var count = 0
        var folded: [Int64: Int] = [:]
        for (closing, found) in zip(digests, closed) {
            guard let found else { continue }
            let container: Int64 = found[0]
            try closing.retry.save(of: container, in: db)
            folded[container, default: 0] += Int(closing.digest.deliveries) - 1
            count += 1
        }
        for (container, number) in folded {
            try db.addToAccount(of: container, folded: number)
        }
        return count
    }

    // MARK: For whoever asks

    package func held(
        of owner: UserID, in container: ContainerKey, limit: Int
    ) async throws -> [HeldCount] {
        try await rows(
            of: container,
            sql: """
                SELECT subscription, device, sum(deliveries) AS deliveries FROM (
                    SELECT heldSubscription AS subscription, heldDevice AS device, 1 AS deliveries
                    FROM retry WHERE container = ?1 AND heldOwner = ?2
                    UNION ALL
                    SELECT subscription, device, deliveries FROM digest
                    WHERE container = ?1 AND owner = ?2 AND closedAt IS NULL) AS held
                GROUP BY subscription, device ORDER BY subscription, device LIMIT ?3
                """, arguments: [owner.rawValue, max(0, limit)]
        ) { row in
            let stored = StoredRow(row: row, table: "retry")
            let name: String = row["subscription"]
            // The text is split by bytes, because a combining mark at the start of the
            // subscription's ID would form a single character with the slash before it.
            let parts = name.utf8.split(
                separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false
            ).map { String(Substring($0)) }
            return HeldCount(
                database: DatabaseScope(rawValue: parts[0]),
                subscription: try stored.require(
                    "heldSubscription", parts.last.flatMap(SubscriptionID.init(rawValue:))),
                device: try stored.require("heldDevice", DeviceID(rawValue: row["device"])),
                deliveries: row["deliveries"])
        }
    }

    package func digestFate(
        of delivery: Delivery, heldAt moment: Timestamp
    ) async throws -> DigestFate? {
        let group = HeldGroup(delivery)
        return try await read { db in
            guard let container = try db.containerIfKnown(delivery.container) else { return nil }
            return try DigestFate.of(group, container.id, heldAt: moment, in: db)
        }
    }

    package func digestFates(
        of receipts: [DeliveryReceipt]
    ) async throws -> [DeliveryID: DigestFate] {
        guard !receipts.isEmpty else { return [:] }
        return try await read { db in
            let findSubscription = try db.cachedStatement(
                sql: """
                    SELECT container, (SELECT name FROM user WHERE id = owner) AS ownerName,
                        database || '/' || subscriptionID AS name
                    FROM subscription WHERE serial = ?1
                    UNION ALL
                    SELECT container, (SELECT name FROM user WHERE id = owner),
                        database || '/' || subscriptionID
                    FROM pastSubscription WHERE serial = ?1 LIMIT 1
                    """)
            let findDevice = try db.cachedStatement(
                sql: """
                    SELECT deviceID FROM device WHERE serial = ?1
                    UNION ALL SELECT deviceID FROM pastDevice WHERE serial = ?1 LIMIT 1
                    """)
            let subscriptions = try Row.fetchFirsts(
                findSubscription,
                arguments: receipts.map { receipt -> StatementArguments in
                    [receipt.subscriptionSerial.stored]
                })
            let devices = try Row.fetchFirsts(
                findDevice,
                arguments: receipts.map { receipt -> StatementArguments in
                    [receipt.deviceSerial.stored]
                })
            var fates: [DeliveryID: DigestFate] = [:]
            for (receipt, names) in zip(receipts, zip(subscriptions, devices)) {
                guard let subscription = names.0, let device = names.1 else { continue }
                let group = HeldGroup(
                    owner: subscription["ownerName"], subscription: subscription["name"],
                    device: device[0])
                fates[receipt.deliveryID] = try DigestFate.of(
                    group, subscription["container"], heldAt: receipt.at, in: db)
            }
            return fates
        }
    }

    package func heldCounts() async throws -> [HoldReason: Int] {
        try await read { db in
            var counts: [HoldReason: Int] = [:]
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT reason, count(*) FROM retry WHERE heldOwner IS NOT NULL GROUP BY reason
                    """)
            for row in rows {
                guard let reason = WaitReason(stored: row[0]).hold else { continue }
                counts[reason, default: 0] += row[1]
            }
            let digests = try Row.fetchAll(
                db,
                sql: """
                    SELECT reason, sum(deliveries) FROM digest WHERE closedAt IS NULL
                    GROUP BY reason
                    """)
            for row in digests {
                guard let reason = HoldReason(rawValue: row[0]) else { continue }
                counts[reason, default: 0] += row[1]
            }
            return counts
        }
    }
}

private extension DigestFate {
    /// Returns the digest of a group that was open at `moment`, or else the last one before.
    ///
    /// Open and closed digests have an index each, and the two parts of the query use them. Digests
    /// are kept as long as receipts, so a query without an index would search all of them.
    static func of(
        _ group: HeldGroup, _ container: Int64, heldAt moment: Timestamp, in db: Database
    ) throws -> DigestFate? {
        let row = try Row.fetchOne(
            try db.cachedStatement(
                sql: """
                    SELECT * FROM (
                        SELECT * FROM digest
                        WHERE container = ?1 AND owner = ?2 AND subscription = ?3 AND device = ?4
                            AND closedAt IS NULL AND openedAt <= ?5
                        UNION ALL
                        SELECT * FROM digest
                        WHERE container = ?1 AND owner = ?2 AND subscription = ?3 AND device = ?4
                            AND closedAt IS NOT NULL AND openedAt <= ?5) AS line
                    ORDER BY coalesce(closedAt, ?5) < ?5, openedAt DESC, id DESC LIMIT 1
                    """),
            arguments: [container, group.owner, group.subscription, group.device, moment.stored])
        guard let row else { return nil }
        let stored = StoredRow(row: row, table: "digest")
        guard row["closedAt"] as Int64? != nil else {
            return .open(
                until: stored.moment("dueAt"), deliveries: row["count"],
                reason: HoldReason(rawValue: row["reason"]))
        }
        return .closed(
            at: stored.moment("closedAt"), count: row["count"],
            by: try stored.require("deliveryID", DeliveryID(stored: row["deliveryID"])),
            position: LogPosition(stored: row["position"]))
    }
}

extension Digest {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "digest")
        self.init(
            id: row["id"], deliveries: row["deliveries"], count: row["count"],
            openedAt: stored.moment("openedAt"), newest: try OwedDelivery(stored))
    }
}

extension Kindness {
    /// A delivery with the number of its container.
    private typealias Known = (owed: OwedDelivery, container: Int64)
    /// The kindness settings of a subscription, and the serial of the version that has them; the
    /// serial is `nil` if that version has ended and has no successor.
    private typealias Asked = (serial: UInt64?, kindness: String?)

    /// Returns the current settings that may hold `deliveries` back, for those that have any.
    ///
    /// The lookup uses the subscription's ID and the device's token, like the one for withdrawals,
    /// because an edit ends the version that fired. For a once subscription that has fired, its
    /// last settings count.
    static func among(
        _ deliveries: [OwedDelivery], in db: Database
    ) throws -> [DeliveryID: Kindness] {
        let containers = try db.numbers(of: deliveries.map(\.delivery.container))
        let known = deliveries.compactMap { owed -> Known? in
            containers[owed.delivery.container].map { (owed, $0) }
        }
        let subscriptions = try subscriptions(of: known, in: db)
        let statement = try db.cachedStatement(
            sql: """
                SELECT serial, kindness FROM device
                WHERE container = ? AND token = ? AND ended IS NULL
                """)
        let tokens = known.map { (one) -> StatementArguments in
            [one.container, one.owed.delivery.token.rawValue]
        }
        let devices = try Row.fetchFirsts(statement, arguments: tokens)
        var found: [DeliveryID: Kindness] = [:]
        for index in known.indices {
            let id = known[index].owed.delivery.id
            found[id] = Kindness(of: subscriptions[index], devices[index])
        }
        return found
    }

    /// Combines the settings of both, or returns `nil` if there are none.
    private init?(of subscription: Asked?, _ device: Row?) {
        let texts: (subscription: String?, device: String?) = (
            subscription?.kindness, device?["kindness"]
        )
        guard texts.subscription != nil || texts.device != nil else { return nil }
        // Unreadable settings count as none. The unreadable version itself is reported where it is
        // read.
        self.init(
            subscription: texts.subscription.flatMap { text in
                try? SubscriptionKindness(try JSONReader(try JSONValue(stored: text)))
            } ?? SubscriptionKindness(),
            device: texts.device.flatMap { text in
                try? DeviceKindness(storedForm: try JSONValue(stored: text))
            } ?? DeviceKindness(),
            subscriptionSerial: subscription?.serial,
            deviceSerial: device.map { UInt64(clamping: $0["serial"] as Int64) })
    }

    /// Returns the settings that count now, in the order of the deliveries.
    private static func subscriptions(of known: [Known], in db: Database) throws -> [Asked?] {
        let statement = try db.cachedStatement(
            sql: "SELECT kindness, ended FROM subscription WHERE serial = ?")
        let serials = known.map { (one) -> StatementArguments in
            [one.owed.subscriptionSerial.stored]
        }
        let versions = try Row.fetchFirsts(statement, arguments: serials)
        var found = zip(known, versions).map { one, version -> Asked? in
            version.map { row -> Asked in
                let isLive = row["ended"] as Int64? == nil
                return (isLive ? one.owed.subscriptionSerial : nil, row["kindness"])
            }
        }
        // A once subscription that has fired has no successor.
        let ended = known.indices.filter { index in
            found[index]?.serial == nil && known[index].owed.delivery.isOnce != true
        }
        for (database, places) in Dictionary(
            grouping: ended, by: { known[$0].owed.delivery.database })
        {
            let next = try successors(of: places.map { known[$0] }, in: database, db)
            for (place, row) in zip(places, next) {
                guard let row else { continue }
                found[place] = (UInt64(clamping: row["serial"] as Int64), row["kindness"])
            }
        }
        return found
    }

    /// Returns the versions that replaced those that have ended.
    private static func successors(
        of known: [Known], in database: DatabaseScope?, _ db: Database
    ) throws -> [Row?] {
        let scope = database.map { "'\($0.rawValue)'" }
        let statement = try db.cachedStatement(
            sql: """
                SELECT serial, kindness FROM user
                    JOIN subscription ON subscription.owner = user.id
                WHERE user.container = ? AND user.name = ?
                    AND subscription.database IN (\(scope ?? "'public', 'private', 'shared'"))
                    AND subscription.subscriptionID = ? AND subscription.ended IS NULL
                """)
        let names = known.map { (one) -> StatementArguments in
            let delivery = one.owed.delivery
            return [one.container, delivery.owner.rawValue, delivery.subscriptionID.rawValue]
        }
        return try Row.fetchFirsts(statement, arguments: names)
    }
}
