/// A part of a table that one statement looks through.
///
/// To look through all of a very large table takes longer than a server lets a statement, and
/// whoever does so in the transaction that writes keeps everybody waiting.
struct TablePart: Sendable {
    /// What holds of its rows beside other conditions: nothing of the whole table, else it begins
    /// with AND.
    let condition: String
    /// The values of the condition's parameters.
    let arguments: StatementArguments

    /// All of a table.
    static let whole = TablePart(condition: "", arguments: [])

    /// Blocks of a table that are looked through at once: 32 MB, which takes some tens of
    /// milliseconds.
    static let usualBlocks: Int64 = 4096
    /// Where every table has ended: a block has a number of 32 bits.
    private static let beyondAll: Int64 = 0xFFFF_FFFF

    /// The parts of a table, as it lies on the disk: of a file the whole, because no limit is there
    /// for a statement.
    ///
    /// What comes into the table meanwhile is in the last one, or in none.
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
