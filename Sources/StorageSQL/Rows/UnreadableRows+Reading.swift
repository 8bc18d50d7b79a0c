import RelayModel
import Storage

extension UnreadableRow {
    /// Returns the key by which people identify a row of any table: its delivery ID, serial, or
    /// number.
    static func key(of row: Row) -> String {
        if row.hasColumn("deliveryID") {
            return DeliveryID(stored: row["deliveryID"])?.description ?? "?"
        }
        let number: Int64 = row.hasColumn("serial") ? row["serial"] : row["id"]
        return "\(number)"
    }
}

extension UnreadableRows {
    /// Returns what `read` makes of a row.
    ///
    /// If the row cannot be read, remembers it and returns `nil`.
    ///
    /// - Throws: The errors of `read`, except ``StorageError/damaged(path:reason:)``.
    func value<Value>(
        of row: Row, in table: String, _ read: (Row) throws -> Value
    ) throws -> Value? {
        do {
            return try read(row)
        } catch StorageError.damaged(_, let reason) {
            note(UnreadableRow(table: table, key: UnreadableRow.key(of: row), reason: reason))
            return nil
        }
    }

    /// Returns what `read` makes of the readable rows.
    func readable<Value>(
        _ rows: [Row], in table: String, _ read: (Row) throws -> Value
    ) throws -> [Value] {
        try rows.compactMap { try value(of: $0, in: table, read) }
    }
}
