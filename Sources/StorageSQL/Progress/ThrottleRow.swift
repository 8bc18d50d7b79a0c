import FoundationEssentials
import RelayModel
import Storage

/// Keeps the place that a push took among those of its subscription's throttle, for as long as it
/// counts.
struct ThrottleRow {
    private let place: ThrottlePlace
    private let group: HeldGroup

    init(_ place: ThrottlePlace) {
        self.place = place
        group = HeldGroup(place.line)
    }

    /// Writes it, and forgets those of its line that count no more: so a line has hardly more rows
    /// than its throttle has places.
    func save(in db: Database) throws {
        let container = try db.container(place.line.container).id
        try db.cachedStatement(
            sql: """
                DELETE FROM throttlePlace
                WHERE container = ? AND owner = ? AND subscription = ? AND device = ?
                    AND endsAt <= ?
                """
        ).execute(arguments: [
            container, group.owner, group.subscription, group.device, place.takenAt.stored,
        ])
        try db.cachedStatement(
            sql: """
                INSERT INTO throttlePlace
                    (container, owner, subscription, device, deliveryID, takenAt, endsAt)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (container, owner, subscription, device, deliveryID)
                DO UPDATE SET takenAt = excluded.takenAt, endsAt = excluded.endsAt
                """
        ).execute(arguments: [
            container, group.owner, group.subscription, group.device, place.deliveryID.stored,
            place.takenAt.stored, place.endsAt.stored,
        ])
    }
}

extension ThrottlePast {
    /// The most places that one throttle has.
    private static let mostPlaces = 100

    /// Deletes what counts no more at a moment, at most so many.
    static let forgetting = """
        DELETE FROM throttlePlace
        WHERE (container, owner, subscription, device, deliveryID) IN (
            SELECT container, owner, subscription, device, deliveryID FROM throttlePlace
            WHERE endsAt <= ? ORDER BY endsAt LIMIT ?)
        """

    /// What `db` has of `line` that counts at `now`.
    init(_ line: ThrottledLine, at now: Timestamp, in db: Database) throws {
        guard let container = try db.containerIfKnown(line.container)?.id else {
            self.init(line, places: [], isWaitedFor: false)
            return
        }
        let group = HeldGroup(line)
        let names: StatementArguments = [
            container, group.owner, group.subscription, group.device,
        ]
        let rows = try Row.fetchAll(
            try db.cachedStatement(
                sql: """
                    SELECT deliveryID, takenAt, endsAt FROM throttlePlace
                    WHERE container = ? AND owner = ? AND subscription = ? AND device = ?
                        AND endsAt > ?
                    ORDER BY takenAt DESC LIMIT ?
                    """), arguments: names + [now.stored, Self.mostPlaces])
        let isWaitedFor = try Int.fetchOne(
            try db.cachedStatement(
                sql: """
                    SELECT 1 FROM digest
                    WHERE container = ? AND owner = ? AND subscription = ? AND device = ?
                        AND closedAt IS NULL
                    """), arguments: names)
        let places = rows.reversed().compactMap { row in
            let stored = StoredRow(row: row, table: "throttlePlace")
            return DeliveryID(stored: row["deliveryID"]).map { id in
                ThrottlePlace(
                    line, id, takenAt: stored.moment("takenAt"), endsAt: stored.moment("endsAt"))
            }
        }
        self.init(line, places: places, isWaitedFor: isWaitedFor != nil)
    }
}
