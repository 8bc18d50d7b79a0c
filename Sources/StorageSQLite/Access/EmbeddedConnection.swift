import GRDB
import StorageSQL

/// A connection to a SQLite file, as the shared steps speak to it.
///
/// GRDB prepares, steps and keeps statements, and says what failed; parameters are bound and
/// columns read without it, because its own values would be made of the shared ones for nothing.
final class EmbeddedConnection: SQLConnection {
    private let db: GRDB.Database

    init(_ db: GRDB.Database) {
        self.db = db
    }

    var dialect: Dialect { .sqlite }

    var isInsideTransaction: Bool { db.isInsideTransaction }

    func prepare(_ sql: String, keeping: Bool) throws -> any SQLStatement {
        let statement = try keeping ? db.cachedStatement(sql: sql) : db.makeStatement(sql: sql)
        return EmbeddedStatement(statement, db)
    }

    /// Nothing is kept.
    func settle() {}
}

extension StorageSQL.Database {
    /// Speaks to SQLite over a connection of GRDB.
    init(over db: GRDB.Database) {
        self.init(EmbeddedConnection(db))
    }
}

extension DatabaseError: SQLFailure {}
