import Foundation
import RelayModel
import Storage

/// Writes into inboxes.
struct InboxStep: Sendable {
    /// The numbers of an inbox.
    struct Numbers {
        let last: UInt64
        let dropped: UInt64
    }

    /// Notifications after which the size of an inbox is looked at again.
    private static let sizeInterval: Int64 = 64

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

    /// Writes entries; what a crash repeats is there already, and stays as it is.
    static func insert(_ entries: [InboxEntry], perUser: Int, in db: Database) throws {
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO notification
                    (owner, sequence, position, subscriptionSerial, subscriptionID, database,
                    notificationID, originDevice, payload, createdAt, changedAt)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
                """)
        for entry in entries {
            guard let container = try db.containerIfKnown(entry.owner.container) else { continue }
            let owner = try db.user(entry.owner.user, of: container)
            guard try !isKnown(entry, of: owner, in: db) else { continue }
            let sequence = try nextSequence(of: owner, in: container, db)
            try insert.execute(arguments: [
                owner, sequence, entry.position.stored, entry.subscriptionSerial.stored,
                entry.subscriptionID.rawValue, entry.database.rawValue,
                Data(entry.notificationID.bytes), entry.originDevice?.rawValue,
                String(decoding: entry.payload, as: UTF8.self), entry.at.stored,
            ])
            if sequence % sizeInterval == 0 {
                try dropSurplus(of: owner, beyond: perUser, in: db)
            }
        }
    }

    private static func isKnown(
        _ entry: InboxEntry, of owner: Int64, in db: Database
    ) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT EXISTS (
                        SELECT 1 FROM notification
                        WHERE owner = ? AND position = ? AND subscriptionSerial = ?)
                    """),
            arguments: [owner, entry.position.stored, entry.subscriptionSerial.stored]) ?? false
    }

    private static func nextSequence(
        of owner: Int64, in container: StoredContainer, _ db: Database
    ) throws -> Int64 {
        let sequence = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    INSERT INTO inbox (owner, container, lastSequence) VALUES (?, ?, 1)
                    ON CONFLICT (owner) DO UPDATE SET lastSequence = inbox.lastSequence + 1
                    RETURNING lastSequence
                    """), arguments: [owner, container.id])
        guard let sequence else {
            throw StorageError.damaged(path: "inbox", reason: "an inbox has no numbers")
        }
        return sequence
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
        if let last { _ = try drop(upTo: last, of: owner, in: db) }
    }

    /// Drops the notifications with numbers up to `sequence`, and remembers how far that goes.
    static func drop(upTo sequence: Int64, of owner: Int64, in db: Database) throws -> Int {
        try db.cachedStatement(
            sql: "UPDATE inbox SET droppedSequence = max(droppedSequence, ?) WHERE owner = ?"
        ).execute(arguments: [sequence, owner])
        return try db.cachedStatement(
            sql: "DELETE FROM notification WHERE owner = ? AND sequence <= ?"
        )
        .executeCounting(arguments: [owner, sequence])
    }

    /// Marks every notification with this ID as read; says whether there is one.
    ///
    /// Subscriptions that one change fires share the ID.
    func markRead(_ id: UUIDBytes, of owner: Int64, in db: Database) throws -> Bool {
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: Self.sharingStatement), arguments: [owner, Data(id.bytes)])
        let update = try db.cachedStatement(
            sql: """
                UPDATE notification SET sequence = ?, readAt = ?, changedAt = ?
                WHERE owner = ? AND sequence = ?
                """)
        let number = try db.cachedStatement(
            sql: """
                UPDATE inbox SET lastSequence = lastSequence + 1 WHERE owner = ?
                RETURNING lastSequence
                """)
        for row in rows where row["readAt"] as Int64? == nil {
            guard let sequence = try Int64.fetchOne(number, arguments: [owner]) else { continue }
            try update.execute(arguments: [
                sequence, now.stored, now.stored, owner, row["sequence"] as Int64,
            ])
        }
        return !rows.isEmpty
    }

    /// Names its index, because the order would have the whole inbox read.
    static let sharingStatement = """
        SELECT notification.sequence, readAt, inbox.container
        FROM notification INDEXED BY notificationID
            JOIN inbox ON inbox.owner = notification.owner
        WHERE notification.owner = ? AND notificationID = ?
        ORDER BY notification.sequence
        """
}
