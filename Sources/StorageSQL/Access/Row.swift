import RelayModel

/// One row of a result.
package struct Row {
    /// The engine's columns.
    package let columns: any SQLColumns

    package init(_ columns: any SQLColumns) {
        self.columns = columns
    }

    /// The names of the columns, in order.
    package var columnNames: [String] { columns.names.names }

    /// Returns whether there is a column with a name.
    package func hasColumn(_ name: String) -> Bool { columns.names.index(of: name) != nil }

    /// Reads the column at an index.
    ///
    /// - Precondition: The value is not NULL, unless `Value` is optional.
    package subscript<Value: ColumnValue>(_ index: Int) -> Value {
        Value.read(columns, at: index)
    }

    /// Reads the first column with a name.
    ///
    /// - Precondition: The column exists, and its value is not NULL unless `Value` is optional.
    package subscript<Value: ColumnValue>(_ name: String) -> Value {
        guard let index = columns.names.index(of: name) else {
            preconditionFailure("no column \(name) among \(columnNames)")
        }
        return Value.read(columns, at: index)
    }

    /// Returns the text in a column, or `nil` if the value is NULL or a number.
    package func text(at index: Int) -> String? {
        switch columns.value(at: index) {
        case .text(let text): text
        case .bytes(let bytes): String(utf8: bytes)
        case .integer, .real, .null: nil
        }
    }

    /// Returns the text in the first column with a name, or `nil` if there is none or its value is
    /// NULL or a number.
    package func text(of name: String) -> String? {
        columns.names.index(of: name).flatMap(text(at:))
    }

    /// Returns the total size of the texts and blobs in these columns in bytes, without reading
    /// them.
    ///
    /// A column that does not exist counts 0.
    package func bytes(of names: String...) -> Int {
        names.reduce(0) { total, name in
            total + (columns.names.index(of: name).map(columns.size(at:)) ?? 0)
        }
    }

    /// Returns a copy of the row that stays valid after the cursor moves on.
    package func copy() -> Row { Row(columns.copy()) }
}

/// The rows of a result.
///
/// At most a few of them are in memory at a time.
package final class RowCursor {
    private let rows: any SQLRows
    private let row: Row
    private var isDone = false

    init(_ rows: any SQLRows) {
        self.rows = rows
        row = Row(rows)
    }

    /// Returns the next row, which is valid until the following call, or `nil` if there are no
    /// more.
    package func next() throws -> Row? {
        guard !isDone else { return nil }
        if try rows.next() { return row }
        isDone = true
        return nil
    }
}
