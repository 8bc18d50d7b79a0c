/// The differences between the engines' SQL.
///
/// Statements are written once, in SQLite's form and with constructs that both engines understand:
/// a conflict clause names its target, a table's own columns are qualified in `DO UPDATE`, a
/// subquery in `FROM (…)` has a name, and truth values are compared with 0 or 1. The remaining
/// differences are respelled.
package enum Dialect: Sendable, Hashable {
    case sqlite
    case postgresql

    /// Returns the statement in the engine's SQL.
    ///
    /// Callers that prepare statements do this once for each text.
    ///
    /// For PostgreSQL, parameters become `$1`, `$2`, …; SQLite's index hints (`INDEXED BY`) and
    /// forced join order (`CROSS JOIN … ON`) are dropped and left to PostgreSQL's planner; `min`
    /// and `max` of several values become `least` and `greatest`; `instr` becomes `strpos`; and
    /// `user`, which is a reserved word, is quoted.
    package func spelled(_ sql: String) -> String {
        switch self {
        case .sqlite: sql
        case .postgresql: PostgresSpelling(sql).text
        }
    }

    /// Returns the expression for the size of a column's text in bytes.
    func bytes(of column: String) -> String {
        switch self {
        case .sqlite: "length(CAST(\(column) AS BLOB))"
        case .postgresql: "octet_length(\(column))"
        }
    }

    /// Returns the condition that a column is in the result of a subquery.
    ///
    /// PostgreSQL must run the subquery first. If two conditions bound a column, as around a
    /// position, its planner estimates that a quarter of the table matches, and would read all of
    /// it.
    func isAmong(_ column: String, _ question: String) -> String {
        switch self {
        case .sqlite: "\(column) IN (\(question))"
        case .postgresql: "\(column) = ANY (ARRAY(\(question)))"
        }
    }

    /// Returns the expression for the last number that the database assigned to a row of a table;
    /// NULL if it assigned none.
    func lastNumber(of column: String, in table: String) -> String {
        switch self {
        case .sqlite: "(SELECT seq FROM sqlite_sequence WHERE name = '\(table)')"
        case .postgresql:
            """
            pg_sequence_last_value(
                pg_get_serial_sequence('\(table.lowercased())', '\(column)')::regclass)
            """
        }
    }

    /// The expression for the server's timeline, which changes when a copy of the server continues
    /// on its own.
    var timeline: String {
        switch self {
        case .sqlite: "''"
        case .postgresql: "left(pg_walfile_name(pg_current_wal_lsn()), 8)"
        }
    }
}
