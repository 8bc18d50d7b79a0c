import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore {
    package func notifications(_ request: InboxRequest) async throws -> InboxReading {
        try await read { db in
            guard let owner = try InboxStep.owner(request.owner, in: db),
                let inbox = try InboxStep.inbox(of: owner, in: db)
            else {
                return request.after == 0 ? .page([], next: 0, isComplete: true) : .expired
            }
            let after = request.after
            let isKnown = after == 0 || (inbox.dropped <= after && after <= inbox.last)
            guard isKnown else { return .expired }
            let limit = max(1, request.limit)
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT * FROM notification
                    WHERE owner = ?1 AND sequence > ?2 AND (?3 IS NULL OR database = ?3)
                    ORDER BY sequence
                    """, arguments: [owner, after.stored, request.database?.rawValue])
            // Rows are read one by one, so that a skipped row costs no more than reading it.
            let page: Page<StoredNotification> = try PageBounds(rows: limit).page(of: rows) { row in
                if let device = request.device, row.isOrigin(device) { return (nil, 0) }
                return (try StoredNotification(row: row), row.bytes(of: "payload"))
            }
            return .page(
                page.elements,
                next: page.hasMore ? page.elements.last?.sequence ?? after : inbox.last,
                isComplete: !page.hasMore)
        }
    }

    package func markNotificationsRead(
        _ ids: [UUIDBytes], of owner: InboxOwner, at now: Timestamp
    ) async throws -> Set<UUIDBytes> {
        let perUser = settings.inboxPerUser
        let known = try await write(of: owner.container, changes: ids.count) { commit in
            guard let owner = try InboxStep.owner(owner, in: commit.db) else {
                return Set<UUIDBytes>()
            }
            return try InboxStep(now: now).markRead(
                ids, of: owner, perUser: perUser, in: commit.db)
        }
        if !known.isEmpty { inboxes.tell([owner]) }
        return known
    }

    package func inboxNews(of owner: InboxOwner) -> AsyncStream<Void> { inboxes.watch(owner) }

    package func pruneInboxes(
        unchangedSince limit: Timestamp, count: Int = 1000
    ) async throws -> Int {
        // The rows are selected in a read transaction, so that no writer waits. A notification that
        // changes meanwhile gets a later number.
        let ends = try await read { db in
            try Row.fetchAll(
                db, sql: Self.unchangedStatement, arguments: [limit.stored, max(0, count)]
            ).map { InboxStep.End(owner: $0[0], sequence: $0[1]) }
        }
        guard !ends.isEmpty else { return 0 }
        return try await write { commit in try InboxStep.drop(ends, in: commit.db) }
    }

    /// The owners of the oldest notifications that have not changed since a moment, at most a given
    /// number of notifications, each owner with the last number among them.
    static let unchangedStatement = """
        SELECT owner, max(sequence) FROM (
            SELECT owner, sequence FROM notification WHERE changedAt <= ?
            ORDER BY changedAt LIMIT ?) AS first
        GROUP BY owner
        """
}

extension Row {
    /// Returns whether the client that `device` belongs to made the change of this notification.
    ///
    /// All devices of a client count as one, as in the fan-out of pushes.
    func isOrigin(_ device: DeviceID) -> Bool {
        (self["originDevice"] as String?).flatMap(DeviceID.init(rawValue:))
            .map { $0.isOfSameClient(as: device) } ?? false
    }
}

extension StoredNotification {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "notification")
        self.init(
            sequence: stored.number("sequence"), position: LogPosition(stored: row["position"]),
            notificationID: try stored.require(
                "notificationID", UUIDBytes(bytes: row["notificationID"] as Data)),
            subscriptionID: try stored.identifier("subscriptionID"),
            database: try stored.choice("database"),
            payload: Array((row["payload"] as String).utf8),
            createdAt: stored.moment("createdAt"),
            readAt: (row["readAt"] as Int64?).map(Timestamp.init(stored:)))
    }
}
