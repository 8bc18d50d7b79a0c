import RelayModel
import Storage

/// Records what a user's client reports about notifications.
struct ClientReceiptStep: Sendable {
    let owner: Int64
    let now: Timestamp

    /// The key of a receipt.
    ///
    /// The device's ID is compared byte by byte, as in the table.
    private struct Place: Hashable {
        let position: LogPosition
        let device: [UInt8]
        let subscriptionSerial: UInt64

        init(_ mark: ClientMark) {
            position = mark.position
            device = mark.device.map { Array($0.rawValue.utf8) } ?? []
            subscriptionSerial = mark.subscriptionSerial ?? 0
        }
    }

    /// What is known of a user's receipts, as far as one request needs.
    private struct Known {
        var receipts: [Place: ClientReceipt] = [:]
        /// The earliest report of any device that a change's notification arrived.
        ///
        /// A receipt without a device refers to the same notification.
        var first: [LogPosition: Timestamp] = [:]

        mutating func note(_ receipt: ClientReceipt, at place: Place) {
            receipts[place] = receipt
            let moment = receipt.deliveredAt
            first[place.position] = min(first[place.position] ?? moment, moment)
        }
    }

    /// Records the marks of one request in order.
    ///
    /// The first report of a fact stays.
    ///
    /// All marks are looked up together, because there may be hundreds and all other writers wait.
    func note(_ marks: [ClientMark], in db: Database) throws -> [NotedMark] {
        var known = try known(of: marks, in: db)
        var noted: [NotedMark] = []
        noted.reserveCapacity(marks.count)
        for mark in marks { noted.append(try note(mark, &known, in: db)) }
        return noted
    }

    private func known(of marks: [ClientMark], in db: Database) throws -> Known {
        var known = Known()
        let found = try Row.fetchFirsts(
            db.cachedStatement(
                sql: """
                    SELECT * FROM clientReceipt
                    WHERE owner = ? AND position = ? AND deviceID = ? AND subscriptionSerial = ?
                    """), arguments: marks.map { mark -> StatementArguments in key(of: mark) })
        for case (let mark, let row?) in zip(marks, found) {
            known.receipts[Place(mark)] = try ClientReceipt(row: row)
        }
        let unnamed = marks.filter { $0.device == nil && known.receipts[Place($0)] == nil }
        let positions = Array(Set(unnamed.map(\.position)))
        let first = try Row.fetchFirsts(
            db.cachedStatement(
                sql: """
                    SELECT deliveredAt FROM clientReceipt WHERE owner = ? AND position = ?
                    ORDER BY deliveredAt LIMIT 1
                    """),
            arguments: positions.map { position -> StatementArguments in [owner, position.stored] })
        for case (let position, let row?) in zip(positions, first) {
            known.first[position] = Timestamp(stored: row[0] as Int64)
        }
        return known
    }

    private func key(of mark: ClientMark) -> StatementArguments {
        [
            owner, mark.position.stored, mark.device?.rawValue ?? "",
            (mark.subscriptionSerial ?? 0).stored,
        ]
    }

    private func note(
        _ mark: ClientMark, _ known: inout Known, in db: Database
    ) throws -> NotedMark {
        let place = Place(mark)
        let before = known.receipts[place]
        let earlier = before == nil && mark.device == nil ? known.first[mark.position] : nil
        var receipt =
            before
            ?? ClientReceipt(
                position: mark.position, device: mark.device,
                subscriptionSerial: mark.subscriptionSerial, deliveredAt: earlier ?? mark.at)
        let isNewOpening = mark.kind == .opened && receipt.openedAt == nil
        if isNewOpening { receipt.openedAt = mark.at }
        if before == nil {
            try db.cachedStatement(
                sql: """
                    INSERT INTO clientReceipt
                        (owner, position, deviceID, subscriptionSerial, deliveredAt, openedAt,
                        markedAt)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(
                arguments: key(of: mark) + [
                    receipt.deliveredAt.stored, receipt.openedAt?.stored, now.stored,
                ])
        } else if isNewOpening {
            try db.cachedStatement(
                sql: """
                    UPDATE clientReceipt SET openedAt = ?5, markedAt = ?6
                    WHERE owner = ?1 AND position = ?2 AND deviceID = ?3
                        AND subscriptionSerial = ?4
                    """
            ).execute(arguments: key(of: mark) + [receipt.openedAt?.stored, now.stored])
        }
        known.note(receipt, at: place)
        return NotedMark(
            receipt: receipt, isNewDelivery: before == nil && earlier == nil,
            isNewOpening: isNewOpening)
    }

    /// Deletes the receipts of the earliest changes beyond the maximum of a user.
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
