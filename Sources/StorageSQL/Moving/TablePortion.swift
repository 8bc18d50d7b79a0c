/// The limits of a portion in memory.
package struct PortionLimits: Sendable, Hashable {
    /// The maximum number of rows in a portion.
    package var rows = 1000
    /// The bytes of values at which a portion ends.
    ///
    /// One row may exceed them.
    package var bytes = 1 << 20

    package init() {}
}

/// Some rows of a table, in the order of its key.
struct TablePortion {
    /// The values in the order of ``TableLayout/columns``.
    private(set) var rows: [[SQLValue]] = []
    /// The key of the last row.
    private(set) var lastKey: [SQLValue]?
    /// Whether these are certainly the last rows of the table.
    private(set) var isLast = true

    /// Reads the rows after the one with the key `last`, in O(rows read).
    init(
        of table: TableLayout, after last: [SQLValue]?, _ limits: PortionLimits, in db: Database
    ) throws {
        let statement = try db.makeStatement(sql: Self.sql(table, isFirst: last == nil, db, limits))
        let found = try Row.fetchCursor(
            statement, arguments: StatementArguments(values: last ?? []))
        var bytes = 0
        while let row = try found.next() {
            let values = Self.values(of: row, table)
            rows.append(values)
            bytes += values.reduce(0) { $0 + $1.byteCount }
            if bytes >= limits.bytes || rows.count == limits.rows {
                isLast = false
                break
            }
        }
        lastKey = rows.last.map { row in table.key.map { row[$0] } }
    }

    private static func values(of row: Row, _ table: TableLayout) -> [SQLValue] {
        table.columns.enumerated().map { index, column in
            row.columns.isNull(at: index) ? .null(column.kind) : row.columns.value(at: index)
        }
    }

    /// Returns the statement for a portion.
    ///
    /// A server sends a result whole, so there the statement itself counts bytes and cuts off what
    /// exceeds the limit.
    private static func sql(
        _ table: TableLayout, isFirst: Bool, _ db: Database, _ limits: PortionLimits
    ) -> String {
        let marks = table.key.map { _ in "?" }.joined(separator: ", ")
        let after = isFirst ? "" : "WHERE (\(table.keyNames)) > (\(marks))"
        let rows = """
            SELECT \(table.names) FROM "\(table.name)" \(after)
            ORDER BY \(table.keyNames) LIMIT \(limits.rows)
            """
        let sized = table.columns.filter { $0.kind != .integer }
        guard db.dialect == .postgresql, !sized.isEmpty else { return rows }
        let size = sized.map { "coalesce(octet_length(\"\($0.name)\"), 0)" }
            .joined(separator: " + ")
        return """
            SELECT \(table.names) FROM (
                SELECT *, coalesce(sum(\(size)) OVER (ORDER BY \(table.keyNames)
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS "bytes before"
                FROM (\(rows)) AS portion) AS sized
            WHERE "bytes before" < \(limits.bytes) ORDER BY \(table.keyNames) LIMIT \(limits.rows)
            """
    }

    /// Inserts the rows.
    ///
    /// The engine may defer the statements.
    func insert(into table: TableLayout, _ db: Database) throws {
        let marks = table.columns.map { _ in "?" }.joined(separator: ", ")
        let statement = try db.cachedStatement(
            sql: "INSERT INTO \"\(table.name)\" (\(table.names)) VALUES (\(marks))")
        for row in rows { try statement.execute(arguments: StatementArguments(values: row)) }
    }
}

extension SQLValue {
    /// The approximate size of the value in bytes.
    var byteCount: Int {
        switch self {
        case .integer, .real: 8
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .null: 1
        }
    }
}
