import Crypto
import Foundation
import GRDB
import Migrations
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

@Suite struct MigrationTests {
    @Test func `released migrations are in order and have not changed`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Migrations/sql").standardized
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(files == Migration.released.map { "\($0.name).sql" })
        let numbers = Migration.released.map { $0.name.prefix(5) }
        #expect(Set(numbers).count == numbers.count)
        for migration in Migration.released {
            #expect(migration.name.wholeMatch(of: /v\d{4}_[A-Za-z]+/) != nil)
            let digest = SHA256.hash(data: Data(migration.sql.utf8))
            #expect(Hexadecimal.encode(Array(digest)) == migration.checksum)
        }
    }

    /// Migrations that a later release might have: a new column, a table built anew, an index.
    private static let later: [Migration] = [
        step("v9002_addLabel", "ALTER TABLE container ADD COLUMN label TEXT NOT NULL DEFAULT ''"),
        step(
            "v9003_rebuildAccessKey",
            """
            CREATE TABLE newKey (
                container INTEGER NOT NULL REFERENCES container (id), id TEXT NOT NULL,
                verifier TEXT NOT NULL, PRIMARY KEY (container, id)
            ) STRICT;
            INSERT INTO newKey SELECT container, id, verifier FROM accessKey;
            DROP TABLE accessKey;
            ALTER TABLE newKey RENAME TO accessKey;
            """),
        step("v9004_indexLabel", "CREATE INDEX containerLabel ON container (label)"),
    ]

    private static let all = Migration.released + later

    private static func step(_ name: String, _ sql: String) -> Migration {
        Migration(name: name, sql: sql, checksum: "checksum of \(name)")
    }

    private static func connections(_ home: TemporaryStore) -> StoreConnections {
        StoreConnections(path: home.path, settings: .forTests)
    }

    /// Returns the schema as SQLite describes it, and the names of the migrations.
    private static func schema(_ home: TemporaryStore) throws -> [String] {
        try connections(home).inspect { db in
            try String.fetchAll(
                db.database,
                sql: """
                    SELECT coalesce(sql, name) FROM sqlite_schema
                    UNION ALL SELECT name || checksum FROM migration ORDER BY 1
                    """)
        }
    }

    @Test(arguments: 0...all.count)
    func `every released version is migrated to the newest`(version: Int) throws {
        let fresh = try TemporaryStore()
        let applied = try Self.connections(fresh).prepare(StoreSchema(migrations: Self.all))
        #expect(applied == Self.all.map(\.name))

        let home = try TemporaryStore()
        let old = StoreSchema(migrations: Array(Self.all.prefix(version)))
        _ = try Self.connections(home).prepare(old)
        if version > 0 { try Self.fill(home) }
        #expect(try RelayStore.schemaVersion(of: home.path) == version)
        let rest = try Self.connections(home).prepare(StoreSchema(migrations: Self.all))
        #expect(rest == Self.all.dropFirst(version).map(\.name))
        #expect(try Self.schema(home) == Self.schema(fresh))
        #expect(try Self.connections(home).prepare(StoreSchema(migrations: Self.all)) == [])
        if version > 0 {
            let keys = try Self.connections(home).inspect {
                try String.fetchAll($0.database, sql: "SELECT id || verifier FROM accessKey")
            }
            #expect(keys == ["kv"])
        }
    }

    /// Inserts one key of one container into a file of any version.
    private static func fill(_ home: TemporaryStore) throws {
        let queue = try DatabaseQueue(path: home.path)
        try queue.write { db in
            try db.execute(
                sql: """
                    INSERT INTO container
                        (id, name, environment, topics, expirationSeconds, savedAt)
                    VALUES (1, 'c', 'production', '[]', 0, 0)
                    """)
            let isOld = try db.columns(in: "accessKey").count > 3
            try db.execute(
                sql: isOld
                    ? """
                    INSERT INTO accessKey (container, id, verifier, kind, label, createdAt)
                    VALUES (1, 'k', 'v', 'bearer', '', 0)
                    """
                    : "INSERT INTO accessKey (container, id, verifier) VALUES (1, 'k', 'v')")
        }
        try queue.close()
    }

    @Test func `a newer schema is refused and left alone`() throws {
        let home = try TemporaryStore()
        _ = try Self.connections(home).prepare(StoreSchema(migrations: Self.all))
        let before = try Self.schema(home)
        let refusal = StorageError.newerSchema(
            found: "version \(Self.all.count)", known: "versions up to \(Migration.released.count)")
        #expect(throws: refusal) { try home.open() }
        #expect(throws: refusal) { try RelayStore.migrate(path: home.path) }
        #expect(try Self.schema(home) == before)
    }

    @Test func `a released migration that was changed is refused`() throws {
        let home = try TemporaryStore()
        _ = try Self.connections(home).prepare(StoreSchema(migrations: Self.all))
        var changed = Self.all
        changed[Migration.released.count] = Self.step("v9002_addOtherLabel", "SELECT 1")
        #expect(
            throws: StorageError.foreignSchema(
                path: home.path,
                reason: "migration v9002_addLabel is not the released v9002_addOtherLabel: "
                    + StorageError.othersSchema)
        ) {
            try Self.connections(home).prepare(StoreSchema(migrations: changed))
        }
    }

    @Test func `a failing migration leaves the version before it`() throws {
        let home = try TemporaryStore()
        let broken = Self.step(
            "v9003_break", "CREATE TABLE half (id INTEGER); INSERT INTO nowhere VALUES (1)")
        let steps = Migration.released + [Self.later[0], broken]
        _ = try Self.connections(home).prepare(StoreSchema(migrations: Migration.released))
        #expect(throws: EmbeddedError.self) {
            try Self.connections(home).prepare(StoreSchema(migrations: steps))
        }
        #expect(try RelayStore.schemaVersion(of: home.path) == Migration.released.count + 1)
        #expect(try Self.schema(home).contains { $0.contains("half") } == false)
    }

    @Test func `a new file has all migrations or none`() throws {
        let home = try TemporaryStore()
        let broken = Self.step("v9003_break", "INSERT INTO nowhere VALUES (1)")
        #expect(throws: EmbeddedError.self) {
            try Self.connections(home).prepare(
                StoreSchema(migrations: Migration.released + [broken]))
        }
        #expect(try RelayStore.schemaVersion(of: home.path) == 0)
        _ = try Self.connections(home).prepare(StoreSchema(migrations: Migration.released))
        #expect(try RelayStore.schemaVersion(of: home.path) == Migration.released.count)
    }

    @Test func `a migration that would break references is undone`() throws {
        let home = try TemporaryStore()
        _ = try Self.connections(home).prepare(StoreSchema(migrations: Migration.released))
        try Self.fill(home)
        let broken = Self.step("v9002_break", "DELETE FROM container")
        #expect(
            throws: StorageError.damaged(
                path: home.path, reason: "v9002_break would break references of accessKey")
        ) {
            try Self.connections(home).prepare(
                StoreSchema(migrations: Migration.released + [broken]))
        }
        #expect(try RelayStore.schemaVersion(of: home.path) == Migration.released.count)
    }

    @Test func `migrate names the migrations that it applied`() throws {
        let home = try TemporaryStore()
        #expect(try RelayStore.migrate(path: home.path) == Migration.released.map(\.name))
        #expect(try RelayStore.migrate(path: home.path) == [])
        #expect(try RelayStore.schemaVersion(of: home.path) == Migration.released.count)
    }

    /// Cancelling a move and continuing it both need the newest version.
    @Test func `a file that was moved away is migrated and stays marked`() async throws {
        let home = try TemporaryStore()
        let older = StoreSchema(migrations: Array(Migration.released.dropLast()))
        _ = try Self.connections(home).prepare(older)
        let queue = try DatabaseQueue(path: home.path)
        try await queue.write { db in
            try db.execute(
                sql: """
                    PRAGMA application_id = \(StoreSchema.movedID);
                    CREATE TABLE storeMove (
                        id INTEGER PRIMARY KEY, direction TEXT NOT NULL, identity BLOB NOT NULL,
                        place TEXT NOT NULL, tableName TEXT NOT NULL, lastKey TEXT,
                        rowCount INTEGER NOT NULL
                    ) STRICT;
                    INSERT INTO storeMove VALUES (1, 'away', zeroblob(16), 'far', '', NULL, 0)
                    """)
        }
        try queue.close()
        let applied = try RelayStore.migrate(path: home.path)
        #expect(applied == Migration.released.suffix(1).map(\.name))
        let refusal = #expect(throws: StorageError.self) { try home.open() }
        #expect(refusal?.description.contains("it was moved to far") == true)
        let end = try EmbeddedMoveEnd(home.path, as: .source)
        try StoreMove.takeBack(end, identity: Data(repeating: 7, count: 16))
        await end.end()
        await (try home.open()).close()
    }
}
