import RelayModel
import Storage

/// Notes what a user's client says of notifications.
struct ClientReceiptStep: Sendable {
    let owner: Int64
    let now: Timestamp

    /// Notes one mark; what was said first stays.
    func note(_ mark: ClientMark, in db: Database) throws -> NotedMark {
        let find = try db.cachedStatement(
            sql: """
                SELECT * FROM clientReceipt
                WHERE owner = ? AND position = ? AND deviceID = ? AND subscriptionSerial = ?
                """)
        let key: StatementArguments = [
            owner, mark.position.stored, mark.device?.rawValue ?? "",
            (mark.subscriptionSerial ?? 0).stored,
        ]
        let known = try Row.fetchOne(find, arguments: key).map { try ClientReceipt(row: $0) }
        let earlier = try known == nil && mark.device == nil ? firstDelivery(mark, in: db) : nil
        var receipt =
            known
            ?? ClientReceipt(
                position: mark.position, device: mark.device,
                subscriptionSerial: mark.subscriptionSerial, deliveredAt: earlier ?? mark.at)
        let isNewOpening = mark.kind == .opened && receipt.openedAt == nil
        if isNewOpening { receipt.openedAt = mark.at }
        if known == nil {
            try db.cachedStatement(
                sql: """
                    INSERT INTO clientReceipt
                        (owner, position, deviceID, subscriptionSerial, deliveredAt, openedAt,
                        markedAt)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(
                arguments: key + [
                    receipt.deliveredAt.stored, receipt.openedAt?.stored, now.stored,
                ])
        } else if isNewOpening {
            try db.cachedStatement(
                sql: """
                    UPDATE clientReceipt SET openedAt = ?5, markedAt = ?6
                    WHERE owner = ?1 AND position = ?2 AND deviceID = ?3
                        AND subscriptionSerial = ?4
                    """
            ).execute(arguments: key + [receipt.openedAt?.stored, now.stored])
        }
        return NotedMark(
            receipt: receipt, isNewDelivery: known == nil && earlier == nil,
            isNewOpening: isNewOpening)
    }

    /// When it was first said, by whichever device, that a change's notification came; what names
    /// no device speaks of the same.
    private func firstDelivery(_ mark: ClientMark, in db: Database) throws -> Timestamp? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT deliveredAt FROM clientReceipt WHERE owner = ? AND position = ?
                    ORDER BY deliveredAt LIMIT 1
                    """), arguments: [owner, mark.position.stored]
        ).map(Timestamp.init(stored:))
    }

    /// Drops what is of the earliest changes, beyond as many as a user may have.
    func dropSurplus(in db: Database) throws {
        let last = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT position FROM clientReceipt WHERE owner = ?
                    ORDER BY position DESC LIMIT 1 OFFSET ?
                    """), arguments: [owner, Limits.maximumClientReceiptsPerUser])
        guard let last else { return }
        try db.cachedStatement(
            sql: "DELETE FROM clientReceipt WHERE owner = ? AND position <= ?"
        ).execute(arguments: [owner, last])
    }
}

extension ClientReceipt {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "clientReceipt")
        let device: String = row["deviceID"]
        let serial = stored.number("subscriptionSerial")
        self.init(
            position: LogPosition(stored: row["position"]),
            device: DeviceID(rawValue: device), subscriptionSerial: serial == 0 ? nil : serial,
            deliveredAt: stored.moment("deliveredAt"),
            openedAt: (row["openedAt"] as Int64?).map(Timestamp.init(stored:)))
    }
}
