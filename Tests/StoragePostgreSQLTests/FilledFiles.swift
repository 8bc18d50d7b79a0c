import Foundation
import GRDB
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// Files that together have rows in every table, as the cases of the contract leave them.
enum FilledFiles {
    /// A file, and the tables that it is there for.
    struct File: Sendable {
        let path: String
        let tables: Set<String>
        let rows: Int
    }

    /// As few files as have all that the contract writes; the first has rows in most tables, and of
    /// those that have in as many the most rows up to a thousand, so that it is the same each time,
    /// and is moved row by row in some seconds.
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

    /// The tables of the file at `path` that have rows, in small letters.
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

    /// A copy of a file, in a folder of its own.
    static func copy(_ file: File) throws -> String {
        let path = try TemporaryStore(in: .memory).path
        for ending in ["", "-witness"] {
            try FileManager.default.copyItem(atPath: file.path + ending, toPath: path + ending)
        }
        return path
    }

    /// Has rows in the tables that no case of the contract writes, and values at the edges.
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

    /// Everything in the file at `path`, but what is told of its openings: a line for each row.
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

    /// Texts are read as bytes, because GRDB reads them up to U+0000.
    private static func selection(of table: String, _ db: GRDB.Database) throws -> String {
        let columns = try db.columns(in: table).map { column in
            column.type == "TEXT"
                ? "CAST(\"\(column.name)\" AS BLOB) AS \"\(column.name)\"" : "\"\(column.name)\""
        }
        return "SELECT \(columns.joined(separator: ", ")) FROM \"\(table)\""
    }

    /// PostgreSQL keeps U+FFFD in the place of U+0000.
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

/// Makes stores of which the files stay.
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

    /// Closes all, and returns the files.
    func close() async -> [String] {
        for (_, store) in homes.withLock({ $0 }).values { await store.close() }
        return homes.withLock { $0.keys.sorted() }
    }
}
