import CSQLite
import Migrations
import Storage
import StorageSQL

/// Brings a database file to the newest version of the schema.
///
/// The version is the number of migrations that were applied to the file (`PRAGMA user_version`).
/// The table `migration` has their names and checksums, which reveal a migration that was changed
/// after its release.
struct StoreSchema {
    /// "Blfy": marks a file as Belfry's.
    static let applicationID: Int32 = 0x426C_6679
    /// "Blfb": marks a backup, which becomes a store by being restored.
    static let backupID: Int32 = 0x426C_6662
    /// "Blfm": marks a file that is or was being moved, or that another store is being moved into.
    static let movedID: Int32 = 0x426C_666D

    /// The version that this build writes.
    static var newestVersion: Int { Migration.released.count }

    /// The migrations in order.
    let migrations: [Migration]

    /// The version that these migrations lead to.
    var version: Int { migrations.count }

    /// Returns the version of the file behind `db`; 0 if it is empty.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if another program wrote the file.
    static func version(_ db: EmbeddedConnection, path: String) throws -> Int {
        let version = try Int.fetchOne(db.database, sql: "PRAGMA user_version") ?? 0
        let application = try Int32.fetchOne(db.database, sql: "PRAGMA application_id") ?? 0
        let tables = try Int.fetchOne(db.database, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        if version == 0, application == 0, tables == 0 { return 0 }
        guard [applicationID, backupID, movedID].contains(application) else {
            throw StorageError.noStore(path, "another program wrote it")
        }
        return version
    }

    /// Returns the error for an empty file, which a full disk may leave and which SQLite accepts as
    /// an empty database.
    static func empty(_ path: String) -> StorageError {
        .noStore(path, "it is empty")
    }

    /// Applies the missing migrations and returns their names.
    ///
    /// Each runs in a transaction of its own; for a new file, all run in one.
    ///
    /// - Throws: ``StorageError/newerSchema(found:known:)`` if the file has more migrations than
    ///   this build knows, and ``StorageError/foreignSchema(path:reason:)`` if one of its
    ///   migrations differs from the released one.
    func apply(to db: EmbeddedConnection, path: String) throws -> [String] {
        let found = try Self.version(db, path: path)
        guard found <= version else {
            throw StorageError.newerSchema(
                found: "version \(found)", known: "versions up to \(version)")
        }
        if found > 0 { try compareChecksums(db, found: found, path: path) }
        guard found < version else { return [] }
        // A migration may rebuild a table that others refer to. `foreign_key_check` before each
        // commit replaces the enforcement. A migration may also write to `sqlite_schema`, which is
        // refused otherwise.
        try db.execute(sql: "PRAGMA foreign_keys = OFF")
        try setDefence(of: db, isOn: false)
        if found == 0 {
            try apply(1...version, to: db, path: path)
        } else {
            for number in found + 1...version {
                try apply(number...number, to: db, path: path)
            }
        }
        try setDefence(of: db, isOn: true)
        try db.execute(sql: "PRAGMA foreign_keys = ON")
        return migrations[found...].map(\.name)
    }

    /// Sets whether SQLite refuses every statement that writes to `sqlite_schema`.
    private func setDefence(of db: EmbeddedConnection, isOn: Bool) throws {
        let wanted: Int32 = isOn ? 1 : 0
        let found = belfry_sqlite_defend(db.pointer, wanted)
        guard found == wanted else {
            throw StorageError.unsafeSetting(
                name: "DEFENSIVE", wanted: "\(wanted)", found: "\(found)")
        }
    }

    /// Applies migrations, counted from 1, in one transaction.
    private func apply(_ numbers: ClosedRange<Int>, to db: EmbeddedConnection, path: String) throws
    {
        try db.inTransaction(.immediate) {
            for number in numbers { try apply(number, to: db) }
            if let row = try Row.fetchOne(db.database, sql: "PRAGMA foreign_key_check") {
                let table = row[0] as String? ?? "?"
                let name = migrations[numbers.upperBound - 1].name
                throw StorageError.damaged(
                    path: path, reason: "\(name) would break references of \(table)")
            }
        }
    }

    private func apply(_ number: Int, to db: EmbeddedConnection) throws {
        let migration = migrations[number - 1]
        if number == 1 {
            try db.execute(
                sql: """
                    PRAGMA application_id = \(Self.applicationID);
                    CREATE TABLE migration (
                        number INTEGER PRIMARY KEY,
                        name TEXT NOT NULL,
                        checksum TEXT NOT NULL
                    ) STRICT;
                    """)
        }
        try db.execute(sql: migration.sql)
        try db.database.execute(
            sql: "INSERT INTO migration (number, name, checksum) VALUES (?, ?, ?)",
            arguments: [number, migration.name, migration.checksum])
        try db.execute(sql: "PRAGMA user_version = \(number)")
    }

    private func compareChecksums(_ db: EmbeddedConnection, found: Int, path: String) throws {
        let rows = try Row.fetchAll(
            db.database, sql: "SELECT number, name, checksum FROM migration ORDER BY number")
        guard rows.count == found else {
            throw StorageError.damaged(
                path: path, reason: "version \(found) with \(rows.count) migrations")
        }
        for (row, migration) in zip(rows, migrations) {
            let name: String = row[1]
            let checksum: String = row[2]
            guard name == migration.name, checksum == migration.checksum else {
                throw StorageError.foreignSchema(
                    path: path,
                    reason: "migration \(name) is not the released \(migration.name): "
                        + StorageError.othersSchema)
            }
        }
    }
}
