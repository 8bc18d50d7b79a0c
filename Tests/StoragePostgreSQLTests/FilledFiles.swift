import Foundation
import GRDB
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// Store files, made by the conformance suite, that together have rows in every table.
enum FilledFiles {
    /// A file, and the tables in it that have rows.
    struct File: Sendable {
        let path: String
        let tables: Set<String>
        let rows: Int
    }

    /// Returns the smallest set of files that covers all tables that the conformance suite fills.
    ///
    /// Each file is the one that adds the most tables; among equals, the one with the most rows up
    /// to a thousand. So the choice is the same each time, and the first file can be moved row by
    /// row within seconds.
    static func all() async throws -> [File] { try await gathered.value }

    private static let gathered = Task { try await gather() }

    private static func gather() async throws -> [File] {
        let factory = KeptStoreFactory()
        for contract in StoreConformance.cases { try await contract.check(factory) }
        var left = try await factory.close().map {
            File(path: $0, tables: try filled($0), rows: try contents(of: $0).count)
        }
        var chosen: [File] = []
        var seen: Set<String> = []
        while let best = left.max(by: { gain($0, seen) < gain($1, seen) }),
            gain(best, seen).tables > 0
        {
            seen.formUnion(best.tables)
            chosen.append(best)
            left.removeAll { $0.path == best.path }
        }
        return chosen
    }

    private static func gain(_ file: File, _ seen: Set<String>) -> (tables: Int, rows: Int) {
        (file.tables.subtracting(seen).count, file.rows > 1000 ? -file.rows : file.rows)
    }

    /// Returns the tables of the file at `path` that have rows, in lower case.
    static func filled(_ path: String) throws -> Set<String> {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { db in
            let names = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_schema
                    WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
                    """)
            return Set(
                try names.filter { name in
                    try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \"\(name)\")") == true
                }.map { $0.lowercased() })
        }
    }

    /// Copies a file into a folder of its own, and returns the copy's path.
    static func copy(_ file: File) throws -> String {
        let path = try TemporaryStore(in: .memory).path
        for ending in ["", "-witness"] {
            try FileManager.default.copyItem(atPath: file.path + ending, toPath: path + ending)
        }
        return path
    }

    /// Adds rows to the tables that the conformance suite does not fill, and extreme values.
    static func complete(_ path: String) throws {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        try queue.write { db in try db.execute(sql: rest) }
    }

    private static let rest = """
        INSERT INTO adminToken (id, verifier, label, mayChange, createdAt)
            VALUES ('one', printf('%064d', 1), 'odd \u{1F300}', 1, 9223372036854775807);
        INSERT INTO auditEntry (at, caller, method, path, status)
            VALUES (-1, '', 'GET', '/a' || char(0) || 'b', 200), (2, 'c', 'PUT', '/', NULL);
        DELETE FROM auditEntry WHERE at = 2;
        INSERT INTO dearStrike SELECT serial, 1 FROM subscription LIMIT 1;
        INSERT INTO disabledSubscription
            SELECT owner, database, 'off', serial, body, activation, 'too dear', activation + 1
            FROM subscription LIMIT 1;
        INSERT INTO quarantinedRange
            SELECT 7, id, 1, 1, x'01', 0, 'why', 1 FROM container LIMIT 1;
        INSERT OR IGNORE INTO recordType
            SELECT id, 'Artwork', 0, 0, '[]' FROM container LIMIT 1;
        INSERT INTO recordField
            SELECT container, name, 'title', 'STRING', 1, 0 FROM recordType LIMIT 1;
        INSERT INTO schemaRole SELECT id, 'editor' FROM container;
        INSERT INTO forgottenType
            SELECT id, 'Gone', 9, 'private', '_owner', '', 'z', 'Gone', 'r' FROM container LIMIT 1;
        INSERT INTO secretSeal VALUES (1, 'key', 'proof');
        INSERT INTO usedSignature SELECT id, zeroblob(32), 1 FROM container LIMIT 1;
        INSERT INTO zoneMemory SELECT id, 'private', '_owner', 1, 0 FROM container LIMIT 1;
        """

    /// Returns everything in the file at `path` as one line for each row, except what records its
    /// openings.
    static func contents(of path: String) throws -> [String] {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { db in
            let names = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'migration'
                    ORDER BY name
                    """)
            return try names.flatMap { name in
                try Row.fetchAll(db, sql: try selection(of: name, db)).map { row in
                    let values = row.filter { !ofOpenings.contains("\(name).\($0.0)") }
                    let texts = values.map { "\($0.0): \(text(of: $0.1))" }
                    return "\(name) \(texts.joined(separator: " "))"
                }.sorted()
            }
        }
    }

    /// Selects texts as bytes, because GRDB reads a text only up to U+0000.
    private static func selection(of table: String, _ db: GRDB.Database) throws -> String {
        let columns = try db.columns(in: table).map { column in
            column.type == "TEXT"
                ? "CAST(\"\(column.name)\" AS BLOB) AS \"\(column.name)\"" : "\"\(column.name)\""
        }
        return "SELECT \(columns.joined(separator: ", ")) FROM \"\(table)\""
    }

    /// PostgreSQL stores U+FFFD in place of U+0000.
    private static func text(of value: DatabaseValue) -> String {
        guard case .blob(let bytes) = value.storage,
            let text = String(validating: bytes, as: UTF8.self)
        else { return value.description }
        return "\"\(text.replacing("\0", with: "\u{FFFD}"))\""
    }

    private static let ofOpenings: Set<String> = [
        "progress.epoch", "store.isWitnessed", "shardHead.commits",
    ]
}

/// Creates stores whose files stay after the test.
private final class KeptStoreFactory: StoreFactory {
    private let homes = Mutex<[String: (home: TemporaryStore, store: RelayStore)]>([:])

    func makeStore() async throws -> any ConformingStore {
        try open(try TemporaryStore(in: .memory))
    }

    func reopen(_ store: any ConformingStore) async throws -> any ConformingStore {
        let store = try #require(store as? RelayStore)
        await store.close()
        return try open(try #require(homes.withLock { $0[store.path]?.home }))
    }

    private func open(_ home: TemporaryStore) throws -> RelayStore {
        let store = try home.open()
        homes.withLock { $0[home.path] = (home, store) }
        return store
    }

    /// Closes all stores, and returns the paths of their files.
    func close() async -> [String] {
        for (_, store) in homes.withLock({ $0 }).values { await store.close() }
        return homes.withLock { $0.keys.sorted() }
    }
}
