import RelayModel

/// One row of a result.
package struct Row {
    /// The engine's side of it.
    package let columns: any SQLColumns

    package init(_ columns: any SQLColumns) {
        self.columns = columns
    }

    /// The names of the columns, in order.
    package var columnNames: [String] { columns.names.names }

    /// Whether there is a column with a name.
    package func hasColumn(_ name: String) -> Bool { columns.names.index(of: name) != nil }

    /// What a column holds.
    ///
    /// - Precondition: It is not NULL, unless an optional is asked for.
    package subscript<Value: ColumnValue>(_ index: Int) -> Value {
        Value.read(columns, at: index)
    }

    /// What the first column with a name holds.
    ///
    /// - Precondition: It is there; and it is not NULL, unless an optional is asked for.
    package subscript<Value: ColumnValue>(_ name: String) -> Value {
        guard let index = columns.names.index(of: name) else {
            preconditionFailure("no column \(name) among \(columnNames)")
        }
        return Value.read(columns, at: index)
    }

    /// The text in a column; `nil` if it is NULL or a number.
    package func text(at index: Int) -> String? {
        switch columns.value(at: index) {
        case .text(let text): text
        case .bytes(let bytes): String(utf8: bytes)
        case .integer, .real, .null: nil
        }
    }

    /// The text in the first column with a name; `nil` if it is NULL or a number.
    package func text(of name: String) -> String? {
        columns.names.index(of: name).flatMap(text(at:))
    }

    /// The bytes of texts and blobs in these columns, without reading them; 0 for a column that is
    /// not there.
    package func bytes(of names: String...) -> Int {
        names.reduce(0) { total, name in
            total + (columns.names.index(of: name).map(columns.size(at:)) ?? 0)
        }
    }

    /// The row for longer than until the next one.
    package func copy() -> Row { Row(columns.copy()) }
}

/// The rows of a result, of which one at a time is in memory, or on the way.
package final class RowCursor {
    private let rows: any SQLRows
    private let row: Row
    private var isDone = false

    init(_ rows: any SQLRows) {
        self.rows = rows
        row = Row(rows)
    }

    /// The next row, which is good until the one after it; `nil` if there are no more.
    package func next() throws -> Row? {
        guard !isDone else { return nil }
        if try rows.next() { return row }
        isDone = true
        return nil
    }
}
