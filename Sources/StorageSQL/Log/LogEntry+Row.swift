import RelayModel
import Storage

extension LogEntry {
    init(row: Row) throws {
        let stored = StoredRow(row: row, table: "logEntry")
        let position = LogPosition(stored: row["position"])
        do {
            let container = try stored.containerKey()
            self.init(
                position: position, appendedAt: stored.moment("appendedAt"), container: container,
                body: try LogEntryBody(stored, container: container),
                continuesRequest: row["continuesRequest"])
        } catch let error as JSONContractError {
            throw StorageError.damaged(
                path: "logEntry", reason: "entry \(position): \(error)")
        }
    }
}

extension UnreadableEntry {
    /// Creates a description of the entry in a row of the table `logEntry`.
    init(row: Row, reason: String) {
        self.init(
            position: LogPosition(stored: row["position"]),
            isChange: row["kind"] == LogEntryBody.Kind.change.rawValue, reason: reason)
    }
}
