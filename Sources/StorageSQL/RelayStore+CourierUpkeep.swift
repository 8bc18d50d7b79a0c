package import RelayModel
import Storage

extension RelayStore {
    /// The minimum time for which a taken notification is kept, until it was certainly handed over
    /// or put back.
    private static let takenGrace: Duration = .seconds(300)
    /// How long a courier without a device is kept, because its user may sign in again.
    private static let orphanGrace: Duration = .seconds(86_400)

    package func pruneCouriers(
        idleSince: Timestamp, at now: Timestamp, limit: Int = 1000
    ) async throws -> Int {
        let count = max(0, limit)
        // The deletion begins at the first row found here, so that the writer does not walk over
        // rows that were deleted before.
        let first = try await read { db -> (waiting: Int64?, taken: Int64?) in
            guard let row = try Row.fetchOne(db, sql: Self.firstStatement) else {
                return (nil, nil)
            }
            return (row[0] as Int64?, row[1] as Int64?)
        }
        return try await write { commit in
            var changed = 0
            // An expired notification is treated like a taken one.
            if let waiting = first.waiting, waiting <= now.stored {
                changed += try commit.db.executeCounting(
                    sql: Self.expiredStatement, arguments: [now.stored, waiting, count])
            }
            // A delivery that the progress has passed and that is no retry is never repeated.
            if let taken = first.taken {
                let grace = now.advanced(by: .zero - Self.takenGrace).stored
                changed += try commit.db.executeCounting(
                    sql: Self.takenStatement, arguments: [grace, taken, count])
            }
            changed += try Self.endIdleCouriers(since: idleSince, at: now, count, in: &commit)
            return changed
        }
    }

    /// The moment at which the first waiting notification expires, and the position of the first
    /// taken one.
    static let firstStatement = """
        SELECT (
                SELECT expiresAt FROM courierNotification INDEXED BY courierExpiring
                WHERE takenAt IS NULL ORDER BY expiresAt LIMIT 1),
            (
                SELECT position FROM courierNotification INDEXED BY courierTaken
                WHERE takenAt IS NOT NULL ORDER BY position LIMIT 1)
        """

    static let expiredStatement = """
        UPDATE courierNotification SET takenAt = ?1, payload = NULL WHERE id IN (
            SELECT id FROM courierNotification
            WHERE takenAt IS NULL AND expiresAt >= ?2 AND expiresAt <= ?1 LIMIT ?3)
        """

    static let takenStatement = """
        DELETE FROM courierNotification WHERE id IN (
            SELECT id FROM courierNotification AS done
            WHERE takenAt IS NOT NULL AND takenAt <= ?1 AND position >= ?2
                AND position <= (SELECT position FROM progress WHERE shard = 0)
                AND NOT EXISTS (SELECT 1 FROM retry WHERE retry.deliveryID = done.deliveryID)
            LIMIT ?3)
        """

    /// Ends the devices of couriers that are not polled, and deletes couriers without a device.
    private static func endIdleCouriers(
        since: Timestamp, at now: Timestamp, _ limit: Int, in commit: inout OpenCommit
    ) throws -> Int {
        let idle = try Row.fetchAll(
            commit.db, sql: idleStatement, arguments: [since.stored, limit])
        for row in idle {
            let key = try StoredRow(row: row, table: "container").containerKey()
            let container = StoredContainer(id: row["id"], key: key)
            try DeviceStep(container: container, now: now)
                .endAndTell([UInt64(clamping: row["serial"] as Int64)], in: &commit)
        }
        let orphans = try commit.db.executeCounting(
            sql: orphanStatement,
            arguments: [max(since, now.advanced(by: .zero - orphanGrace)).stored, limit])
        return idle.count + orphans
    }

    /// Starts with the couriers that are not polled.
    ///
    /// A search that starts with the devices would read all devices of all containers while all
    /// other writers wait.
    static let idleStatement = """
        SELECT device.serial, container.id, container.name AS containerName,
            container.environment
        FROM courier INDEXED BY courierPolled
            CROSS JOIN device ON device.token = courier.token
            CROSS JOIN container ON container.id = device.container
        WHERE courier.polledAt <= ? AND device.ended IS NULL AND device.gateway = 'courier'
        ORDER BY courier.polledAt LIMIT ?
        """

    static let orphanStatement = """
        DELETE FROM courier WHERE id IN (
            SELECT id FROM courier INDEXED BY courierPolled
            WHERE polledAt <= ?1 AND NOT EXISTS (
                SELECT 1 FROM device
                WHERE device.token = courier.token AND device.ended IS NULL
                    AND device.gateway = 'courier') LIMIT ?2)
        """
}
