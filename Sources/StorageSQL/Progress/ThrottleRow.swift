import FoundationEssentials
import RelayModel
import Storage

/// Stores a throttle place for as long as it counts.
struct ThrottleRow {
    private let place: ThrottlePlace
    private let group: HeldGroup

    init(_ place: ThrottlePlace) {
        self.place = place
        group = HeldGroup(place.line)
    }

    /// Writes the place and deletes the places of its line that no longer count, so that a line has
    /// hardly more rows than its throttle has places.
    func save(of container: Int64, in db: Database) throws {
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
    /// The maximum number of places of one throttle.
    private static let mostPlaces = 100

    /// Returns what the store has of `lines` that counts at `now`, in the order of `lines`.
    static func among(
        _ lines: [ThrottledLine], at now: Timestamp, in db: Database
    ) throws -> [ThrottlePast] {
        let containers = try db.numbers(of: lines.map(\.container))
        let known = lines.compactMap { line -> (line: ThrottledLine, name: StatementArguments)? in
            guard let container = containers[line.container] else { return nil }
            let group = HeldGroup(line)
            return (line, [container, group.owner, group.subscription, group.device])
        }
        let names = known.map(\.name)
        let places = try Row.fetchAlls(
            try db.cachedStatement(
                sql: """
                    SELECT deliveryID, takenAt, endsAt FROM throttlePlace
                    WHERE container = ? AND owner = ? AND subscription = ? AND device = ?
                        AND endsAt > ?
                    ORDER BY takenAt DESC LIMIT ?
                    """),
            arguments: names.map { (name) -> StatementArguments in
                name + [now.stored, Self.mostPlaces]
            })
        let digests = try Row.fetchFirsts(
            try db.cachedStatement(
                sql: """
                    SELECT 1 FROM digest
                    WHERE container = ? AND owner = ? AND subscription = ? AND device = ?
                        AND closedAt IS NULL
                    """), arguments: names)
        var pasts: [ThrottledLine: ThrottlePast] = [:]
        for (index, one) in known.enumerated() {
            pasts[one.line] = ThrottlePast(
                one.line, places: places[index].reversed().compactMap { Self.place(one.line, $0) },
                isWaitedFor: digests[index] != nil)
        }
        return lines.map {
            pasts[$0] ?? ThrottlePast($0, places: [], isWaitedFor: false)
        }
    }

    private static func place(_ line: ThrottledLine, _ row: Row) -> ThrottlePlace? {
        let stored = StoredRow(row: row, table: "throttlePlace")
        return DeliveryID(stored: row["deliveryID"]).map { id in
            ThrottlePlace(
                line, id, takenAt: stored.moment("takenAt"), endsAt: stored.moment("endsAt"))
        }
    }
}
