import FoundationEssentials
import RelayModel
import Storage

/// Reads the retries of one store, a lane at a time.
struct RetryReading {
    let excluding: Set<DeliveryID>
    let isHeld: @Sendable (RetryLane) -> Bool

    /// A lane that may be read, with the moment of its earliest row.
    private struct OpenLane {
        let container: Int64
        let text: String
        let dueAt: Int64
    }

    /// What is due, the lanes whose turn is longest ago first, and each with an equal share; and
    /// those among them that cannot be read.
    func due(
        at now: Timestamp, limit: Int, _ unreadable: UnreadableRows, in db: Database
    ) throws -> (due: [Retry], damaged: [DeliveryID]) {
        let lanes = try openLanes(in: db).filter { $0.dueAt <= now.stored }
        guard !lanes.isEmpty, limit > 0 else { return ([], []) }
        var identities: [[Data]] = []
        let share = max(1, limit / lanes.count)
        for lane in lanes.prefix(limit) {
            identities.append(try self.identities(of: lane, at: now, limit: share, in: db))
        }
        // What some lanes do not need the others may have.
        var left = limit - identities.reduce(0) { $0 + $1.count }
        for index in identities.indices where left > 0 && identities[index].count == share {
            let more = try self.identities(of: lanes[index], at: now, limit: share + left, in: db)
            left -= more.count - share
            identities[index] = more
        }
        let statement = try db.cachedStatement(sql: "SELECT * FROM retry WHERE deliveryID = ?")
        let asked = identities.joined().map { (id) -> StatementArguments in [id] }
        let rows = try Row.fetchFirsts(statement, arguments: asked).compactMap(\.self)
        let due = try unreadable.readable(rows, in: "retry") { try Retry(row: $0) }
        guard due.count < rows.count else { return (due, []) }
        let read = Set(due.map(\.delivery.delivery.id))
        let damaged = rows.compactMap { DeliveryID(stored: $0["deliveryID"]) }
            .filter { !read.contains($0) }
        return (due, damaged)
    }

    /// When the earliest one falls due that may be read.
    func nextDue(in db: Database) throws -> Timestamp? {
        try openLanes(in: db).first.map { Timestamp(stored: $0.dueAt) }
    }

    /// The lanes that are not held and have a row that is not excluded, by their earliest rows.
    ///
    /// The index is probed once a lane, so that a million rows of one cost nothing.
    private func openLanes(in db: Database) throws -> [OpenLane] {
        let next = try db.cachedStatement(
            sql: """
                SELECT container, lane FROM retry WHERE (container, lane) > (?, ?)
                ORDER BY container, lane LIMIT 1
                """)
        var lanes: [OpenLane] = []
        var place: (container: Int64, lane: String) = (0, "")
        while let row = try Row.fetchOne(next, arguments: [place.container, place.lane]) {
            place = (row[0], row[1])
            if let lane = try lane(place.lane, of: place.container, in: db), isHeld(lane) {
                continue
            }
            if let dueAt = try earliest(of: place.container, place.lane, in: db) {
                lanes.append(OpenLane(container: place.container, text: place.lane, dueAt: dueAt))
            }
        }
        return lanes.sorted {
            ($0.dueAt, $0.container, $0.text) < ($1.dueAt, $1.container, $1.text)
        }
    }

    private func lane(
        _ text: String, of container: Int64, in db: Database
    ) throws -> RetryLane? {
        let row = try Row.fetchOne(
            try db.cachedStatement(sql: "SELECT name, environment FROM container WHERE id = ?"),
            arguments: [container])
        guard let row, let name = ContainerID(rawValue: row[0]),
            let environment = ContainerEnvironment(rawValue: row[1])
        else { return nil }
        return RetryLane(text, of: ContainerKey(container: name, environment: environment))
    }

    private func earliest(of container: Int64, _ lane: String, in db: Database) throws -> Int64? {
        try first(1, of: container, lane, in: db).first?.dueAt
    }

    private func identities(
        of lane: OpenLane, at now: Timestamp, limit: Int, in db: Database
    ) throws -> [Data] {
        try first(limit, of: lane.container, lane.text, in: db)
            .filter { $0.dueAt <= now.stored }.map { $0.id }
    }

    /// The rows of a lane that fall due first, without those excluded: of these the identities
    /// alone are read, so that they cost little.
    ///
    /// A server sends whatever it is asked for: so that is no more than is needed if all that are
    /// excluded come first. And one index alone has the order that is asked for: of a lane by its
    /// name, a server that has seen a crowd in another would look for it among all that is due.
    private func first(
        _ count: Int, of container: Int64, _ lane: String, in db: Database
    ) throws -> [(dueAt: Int64, id: Data)] {
        let rows = try Row.fetchCursor(
            try db.cachedStatement(
                sql: """
                    SELECT dueAt, deliveryID, container, lane FROM retry
                    WHERE (container, lane, dueAt) > (?, ?, ?)
                    ORDER BY container, lane, dueAt LIMIT ?
                    """),
            arguments: [container, lane, Int64.min, count + excluding.count])
        var found: [(dueAt: Int64, id: Data)] = []
        while found.count < count, let row = try rows.next() {
            guard (row[2] as Int64) == container, (row[3] as String) == lane else { break }
            let id: Data = row[1]
            if let delivery = DeliveryID(stored: id), !excluding.contains(delivery) {
                found.append((dueAt: row[0], id: id))
            }
        }
        return found
    }
}
