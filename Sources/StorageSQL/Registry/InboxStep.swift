import FoundationEssentials
import RelayModel
import Storage

/// Writes to inboxes.
struct InboxStep: Sendable {
    /// The highest number given out, and the highest dropped.
    struct Numbers {
        let last: UInt64
        let dropped: UInt64
    }

    /// Returns whether the size of an inbox is checked after it gave out these numbers, which is
    /// the case at each multiple of an interval.
    ///
    /// A check reads as many rows as the inbox may have, so not every notification leads to one.
    ///
    /// Marking as read uses numbers too, and its numbers are tested as well, because the new
    /// notifications alone may never get a multiple of the interval.
    private static func isLookedAt(after numbers: ClosedRange<Int64>, of perUser: Int) -> Bool {
        let interval = Int64(max(1, min(64, perUser / 16)))
        return numbers.upperBound / interval > (numbers.lowerBound - 1) / interval
    }

    let now: Timestamp

    static func owner(_ owner: InboxOwner, in db: Database) throws -> Int64? {
        guard let container = try db.containerIfKnown(owner.container) else { return nil }
        return try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT id FROM user WHERE container = ? AND name = ?"),
            arguments: [container.id, owner.user.rawValue])
    }

    static func inbox(of owner: Int64, in db: Database) throws -> Numbers? {
        let statement = try db.cachedStatement(
            sql: "SELECT lastSequence, droppedSequence FROM inbox WHERE owner = ?")
        return try Row.fetchOne(statement, arguments: [owner]).map { row in
            Numbers(
                last: UInt64(clamping: row[0] as Int64), dropped: UInt64(clamping: row[1] as Int64))
        }
    }

    /// Writes notifications.
    ///
    /// One that is repeated after a crash exists already and stays unchanged.
    static func insert(_ entries: [InboxEntry], perUser: Int, in db: Database) throws {
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO notification
                    (owner, sequence, position, subscriptionSerial, subscriptionID, database,
                    notificationID, originDevice, payload, createdAt, changedAt)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
                """)
        let new = try unknown(entries, in: db)
        let numbers = try nextSequences(of: new, in: db)
        for ((entry, inbox), sequence) in zip(new, numbers) {
            let owner = inbox.owner
            try insert.execute(arguments: [
                owner, sequence, entry.position.stored, entry.subscriptionSerial.stored,
                entry.subscriptionID.rawValue, entry.database.rawValue,
                Data(entry.notificationID.bytes), entry.originDevice?.rawValue,
                String(decoding: entry.payload, as: UTF8.self), entry.at.stored,
            ])
            if isLookedAt(after: sequence...sequence, of: perUser) {
                try dropSurplus(of: owner, beyond: perUser, in: db)
            }
        }
    }

    /// The number of a user, and the number of the user's container.
    private typealias Inbox = (owner: Int64, container: Int64)

    /// Returns the inboxes of the entries by owner, without those of containers that were never
    /// saved.
    private static func inboxes(
        of entries: [InboxEntry], in db: Database
    ) throws -> [InboxOwner: Inbox] {
        let containers = try db.numbers(of: entries.map(\.owner.container))
        var asked: [(owner: InboxOwner, container: Int64)] = []
        var seen: Set<InboxOwner> = []
        // In the order of the entries, in which new users get their numbers.
        for owner in entries.map(\.owner) where seen.insert(owner).inserted {
            if let container = containers[owner.container] { asked.append((owner, container)) }
        }
        let find = try db.cachedStatement(
            sql: "SELECT id FROM user WHERE container = ? AND name = ?")
        let names = asked.map { (one) -> StatementArguments in
            [one.container, one.owner.user.rawValue]
        }
        let rows = try Row.fetchFirsts(find, arguments: names)
        var found: [InboxOwner: Inbox] = [:]
        for ((owner, container), row) in zip(asked, rows) {
            let known = StoredContainer(id: container, key: owner.container)
            let number: Int64 = try row.map { $0[0] as Int64 } ?? db.user(owner.user, of: known)
            found[owner] = (number, container)
        }
        return found
    }

    /// Returns the entries that are not written yet, each once, with their inboxes.
    private static func unknown(
        _ entries: [InboxEntry], in db: Database
    ) throws -> [(InboxEntry, Inbox)] {
        let inboxes = try inboxes(of: entries, in: db)
        var asked: [(entry: InboxEntry, inbox: Inbox)] = []
        var places: [StatementArguments] = []
        var seen: Set<StatementArguments> = []
        for entry in entries {
            guard let inbox = inboxes[entry.owner] else { continue }
            let place: StatementArguments = [
                inbox.owner, entry.position.stored, entry.subscriptionSerial.stored,
            ]
            guard seen.insert(place).inserted else { continue }
            asked.append((entry, inbox))
            places.append(place)
        }
        let find = try db.cachedStatement(
            sql: """
                SELECT 1 FROM notification
                WHERE owner = ? AND position = ? AND subscriptionSerial = ?
                """)
        return zip(asked, try Row.fetchFirsts(find, arguments: places)).compactMap { one, row in
            row == nil ? (one.entry, one.inbox) : nil
        }
    }

    /// Returns the next number of the inbox for each entry.
    private static func nextSequences(
        of entries: [(InboxEntry, Inbox)], in db: Database
    ) throws -> [Int64] {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO inbox (owner, container, lastSequence) VALUES (?, ?, 1)
                ON CONFLICT (owner) DO UPDATE SET lastSequence = inbox.lastSequence + 1
                RETURNING lastSequence
                """)
        let asked = entries.map { (_, inbox) -> StatementArguments in
            [inbox.owner, inbox.container]
        }
        return try Row.fetchFirsts(statement, arguments: asked).map { row -> Int64 in
            guard let row else {
                throw StorageError.damaged(path: "inbox", reason: "an inbox has no numbers")
            }
            return row[0]
        }
    }

    private static func dropSurplus(
        of owner: Int64, beyond limit: Int, in db: Database
    ) throws {
        let last = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT sequence FROM notification WHERE owner = ?
                    ORDER BY sequence DESC LIMIT 1 OFFSET ?
                    """), arguments: [owner, limit])
        if let last { _ = try drop([End(owner: owner, sequence: last)], in: db) }
    }

    /// The last notification of a user to drop.
    struct End: Sendable {
        let owner: Int64
        let sequence: Int64
    }

    /// Drops the notifications of users up to the given number of each, records that number, and
    /// returns how many were dropped.
    static func drop(_ ends: [End], in db: Database) throws -> Int {
        let note = try db.cachedStatement(
            sql: "UPDATE inbox SET droppedSequence = max(droppedSequence, ?) WHERE owner = ?")
        for end in ends { try note.execute(arguments: [end.sequence, end.owner]) }
        let delete = try db.cachedStatement(
            sql: "DELETE FROM notification WHERE owner = ? AND sequence <= ? RETURNING sequence")
        let dropped = try Row.fetchAlls(
            delete,
            arguments: ends.map { end -> StatementArguments in [end.owner, end.sequence] })
        return dropped.reduce(0) { $0 + $1.count }
    }

    /// Marks all notifications with these IDs as read, and returns those IDs that the inbox
    /// contains.
    ///
    /// The subscriptions that one change fires share an ID. All notifications are looked up and
    /// numbered together.
    func markRead(
        _ ids: [UUIDBytes], of owner: Int64, perUser: Int, in db: Database
    ) throws -> Set<UUIDBytes> {
        var seen: Set<UUIDBytes> = []
        let asked = ids.filter { seen.insert($0).inserted }
        let found = try Row.fetchAlls(
            db.cachedStatement(sql: Self.sharingStatement),
            arguments: asked.map { id -> StatementArguments in [owner, Data(id.bytes)] })
        let unread = found.flatMap { rows in
            rows.filter { $0["readAt"] as Int64? == nil }.map { $0["sequence"] as Int64 }
        }
        let number = try db.cachedStatement(
            sql: """
                UPDATE inbox SET lastSequence = lastSequence + ? WHERE owner = ?
                RETURNING lastSequence
                """)
        if !unread.isEmpty,
            let last = try Int64.fetchOne(number, arguments: [unread.count, owner])
        {
            let update = try db.cachedStatement(
                sql: """
                    UPDATE notification SET sequence = ?, readAt = ?, changedAt = ?
                    WHERE owner = ? AND sequence = ?
                    """)
            let first = last - Int64(unread.count) + 1
            for (sequence, before) in zip(first..., unread) {
                try update.execute(arguments: [sequence, now.stored, now.stored, owner, before])
            }
            if Self.isLookedAt(after: first...last, of: perUser) {
                try Self.dropSurplus(of: owner, beyond: perUser, in: db)
            }
        }
        return Set(zip(asked, found).filter { !$0.1.isEmpty }.map(\.0))
    }

    /// Names its index, because the requested order would otherwise lead to a scan of the whole
    /// inbox.
    static let sharingStatement = """
        SELECT notification.sequence, readAt, inbox.container
        FROM notification INDEXED BY notificationID
            JOIN inbox ON inbox.owner = notification.owner
        WHERE notification.owner = ? AND notificationID = ?
        ORDER BY notification.sequence
        """
}
