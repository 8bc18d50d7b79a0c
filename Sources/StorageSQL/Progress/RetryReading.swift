import Foundation
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
        let rows = try identities.joined().compactMap { id in
            try Row.fetchOne(statement, arguments: [id])
        }
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
        let rows = try Row.fetchCursor(
            try db.cachedStatement(
                sql: """
                    SELECT dueAt, deliveryID FROM retry WHERE container = ? AND lane = ?
                    ORDER BY dueAt, deliveryID
                    """), arguments: [container, lane])
        while let row = try rows.next() {
            if let id = DeliveryID(stored: row[1]), !excluding.contains(id) { return row[0] }
        }
        return nil
    }

    /// The identities come from the index alone, so that those excluded cost little.
    private func identities(
        of lane: OpenLane, at now: Timestamp, limit: Int, in db: Database
    ) throws -> [Data] {
        let rows = try Data.fetchCursor(
            try db.cachedStatement(
                sql: """
                    SELECT deliveryID FROM retry WHERE container = ? AND lane = ? AND dueAt <= ?
                    ORDER BY dueAt, deliveryID
                    """), arguments: [lane.container, lane.text, now.stored])
        var wanted: [Data] = []
        while wanted.count < limit, let id = try rows.next() {
            if let delivery = DeliveryID(stored: id), !excluding.contains(delivery) {
                wanted.append(id)
            }
        }
        return wanted
    }
}
