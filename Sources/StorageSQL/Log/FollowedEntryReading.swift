import RelayModel
import Storage

/// Reads entries for the follower in one pass over the log's pages.
///
/// Each container is looked up once, and a change stays text.
struct FollowedEntryReading {
    /// The maximum number of bytes of bodies read at a time.
    ///
    /// A single body is read whatever its size.
    static let maximumBytes = 8 * 1024 * 1024

    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Returns the entries up to the first one that cannot be read or that exceeds the size limit.
    ///
    /// - Throws: ``StorageError/unreadable(_:)`` if the first entry cannot be read.
    func entries(after position: LogPosition, limit: Int) throws -> [FollowedEntry] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT position, appendedAt, container, kind, isStale, body, source,
                    continuesRequest
                FROM logEntry WHERE position > ? ORDER BY position LIMIT ?
                """)
        let rows = try Row.fetchCursor(statement, arguments: [position.stored, limit])
        var containers: [Int64: ContainerKey] = [:]
        var entries: [FollowedEntry] = []
        var bytes = 0
        while bytes < Self.maximumBytes, let row = try rows.next() {
            bytes += row.columns.size(at: 5)
            do {
                let number: Int64 = row[2]
                let container = try containers[number] ?? db.containerKey(number)
                containers[number] = container
                entries.append(try entry(row, container))
            } catch let error as any SQLFailure {
                throw error
            } catch {
                guard entries.isEmpty else { break }
                throw StorageError.unreadable(UnreadableEntry(row: row, reason: "\(error)"))
            }
        }
        return entries
    }

    private func entry(_ row: Row, _ container: ContainerKey) throws -> FollowedEntry {
        let position = LogPosition(stored: row[0])
        let body: FollowedBody
        if row[3] as Int64 == LogEntryBody.Kind.change.rawValue {
            guard let text = row.text(at: 5) else {
                throw StorageError.damaged(
                    path: "logEntry", reason: "entry \(position): the body is not a text")
            }
            body = .change(.stored(text), isStale: row[4])
        } else {
            do {
                body = .edit(
                    try LogEntryBody(StoredRow(row: row, table: "logEntry"), container: container))
            } catch let error as JSONContractError {
                throw StorageError.damaged(path: "logEntry", reason: "entry \(position): \(error)")
            }
        }
        return FollowedEntry(
            position: position, appendedAt: Timestamp(stored: row[1]), container: container,
            body: body, continuesRequest: row[7])
    }
}

extension Database {
    /// Returns the container with this number.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if there is none.
    func containerKey(_ number: Int64) throws -> ContainerKey {
        let statement = try cachedStatement(
            sql: "SELECT name AS containerName, environment FROM container WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [number]) else {
            throw StorageError.damaged(path: "container", reason: "a container is missing")
        }
        return try StoredRow(row: row, table: "container").containerKey()
    }
}
