import RelayModel
import Storage

extension UnreadableRow {
    /// What names a row of any table to people: its delivery ID, serial, or number.
    static func key(of row: Row) -> String {
        if row.hasColumn("deliveryID") {
            return DeliveryID(stored: row["deliveryID"])?.description ?? "?"
        }
        let number: Int64 = row.hasColumn("serial") ? row["serial"] : row["id"]
        return "\(number)"
    }
}

extension UnreadableRows {
    /// What `read` makes of a row; `nil`, and remembered, if the row cannot be read.
    ///
    /// - Throws: What `read` throws, except ``StorageError/damaged(path:reason:)``.
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

    /// What `read` makes of those of `rows` that can be read.
    func readable<Value>(
        _ rows: [Row], in table: String, _ read: (Row) throws -> Value
    ) throws -> [Value] {
        try rows.compactMap { try value(of: $0, in: table, read) }
    }
}
