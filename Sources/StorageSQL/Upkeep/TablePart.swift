/// A part of a table that one statement scans.
///
/// Scanning all of a very large table takes longer than a server allows for a statement, and within
/// a write transaction it would keep all other writers waiting.
struct TablePart: Sendable {
    /// The condition that selects the part's rows, to be appended to other conditions: empty for
    /// the whole table, or else it begins with AND.
    let condition: String
    /// The values of the condition's parameters.
    let arguments: StatementArguments

    /// The whole table.
    static let whole = TablePart(condition: "", arguments: [])

    /// The number of blocks scanned at once: 32 MB, which takes some tens of milliseconds.
    static let usualBlocks: Int64 = 4096
    /// A block number beyond the end of every table: block numbers have 32 bits.
    private static let beyondAll: Int64 = 0xFFFF_FFFF

    /// Returns the parts of a table by its blocks on disk.
    ///
    /// A file's table is one part, because SQLite has no time limit for statements.
    ///
    /// Rows added meanwhile are in the last part, or in none.
    static func all(
        of table: String, blocks: Int64 = usualBlocks, in db: Database
    ) throws -> [TablePart] {
        guard db.dialect == .postgresql else { return [whole] }
        let count = try Int64.fetchOne(
            db,
            sql: """
                SELECT pg_relation_size(to_regclass('\(table)'))
                    / CAST(current_setting('block_size') AS bigint)
                """)
        return stride(from: 0, through: max(0, (count ?? 0) - 1), by: Int(blocks)).map { first in
            let end = first + blocks < count ?? 0 ? first + blocks : beyondAll
            return TablePart(
                condition: "AND ctid >= CAST(? AS tid) AND ctid < CAST(? AS tid)",
                arguments: ["(\(first),0)", "(\(end),0)"])
        }
    }
}
