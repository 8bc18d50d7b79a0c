/// What the engines say in different words.
///
/// Statements are written once, as SQLite takes them and in what both understand: a conflict names
/// its target, a table's own columns have its name in `DO UPDATE`, what stands in `FROM (…)` has a
/// name, truths are compared with 0 or 1. The little that is left is respelled.
package enum Dialect: Sendable, Hashable {
    case sqlite
    case postgresql

    /// The statement in the words of the engine; whoever prepares it does so once for each text.
    ///
    /// For PostgreSQL parameters are `$1`, `$2`, …; the index that SQLite is to take (`INDEXED
    /// BY`), and the order in which it is to join (`CROSS JOIN … ON`), are left to PostgreSQL's
    /// planner; `min` and `max` of several values are `least` and `greatest`; `instr` is `strpos`,
    /// and `user`, which is a word of its language, is quoted.
    package func spelled(_ sql: String) -> String {
        switch self {
        case .sqlite: sql
        case .postgresql: PostgresSpelling(sql).text
        }
    }

    /// How many bytes a column's text has.
    func bytes(of column: String) -> String {
        switch self {
        case .sqlite: "length(CAST(\(column) AS BLOB))"
        case .postgresql: "octet_length(\(column))"
        }
    }

    /// The condition that a column is one of what a question finds.
    ///
    /// PostgreSQL is to ask it first: of rows that two columns bound, as those around a place, its
    /// planner takes a quarter of the table for found, and would read all of it beside them.
    func isAmong(_ column: String, _ question: String) -> String {
        switch self {
        case .sqlite: "\(column) IN (\(question))"
        case .postgresql: "\(column) = ANY (ARRAY(\(question)))"
        }
    }

    /// The last number that the database has given to a row of a table; NULL if it has given none.
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

    /// What the database calls its own history, which is another one once a copy of it goes on.
    var timeline: String {
        switch self {
        case .sqlite: "''"
        case .postgresql: "left(pg_walfile_name(pg_current_wal_lsn()), 8)"
        }
    }
}
