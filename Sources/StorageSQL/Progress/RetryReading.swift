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

    /// Returns the due retries, and the IDs of those among them that cannot be read.
    ///
    /// Lanes with the earliest due time come first, and each lane gets an equal share.
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
        // What some lanes do not use is available to others.
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

    /// Returns when the earliest retry in a readable lane falls due.
    func nextDue(in db: Database) throws -> Timestamp? {
        try openLanes(in: db).first.map { Timestamp(stored: $0.dueAt) }
    }

    /// Returns the lanes that are not held and have a row that is not excluded, ordered by their
    /// earliest rows.
    ///
    /// The index is probed once for each lane, so a million rows in one lane cost nothing.
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

    /// Returns the first rows of a lane to fall due, without the excluded ones.
    ///
    /// Only the IDs of rows are read, so that excluded rows cost little.
    ///
    /// A server sends everything that it is asked for, so the limit is what suffices if all
    /// excluded rows come first. The requested order is available from one index only. If the query
    /// named the lane with `=`, a server that has seen many rows in another lane might search the
    /// index of due times.
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
