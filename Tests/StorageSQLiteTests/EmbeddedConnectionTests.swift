import CSQLite
import Dispatch
import Foundation
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Connections to a file and the pool of them, below the code that knows what a store is.
@Suite struct EmbeddedConnectionTests {
    /// A query that takes seconds unless it is interrupted.
    private static let long = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000000)
        SELECT count(*) FROM n
        """

    /// The error of a test in which an interruption came too late.
    struct Missed: Error {}

    /// A flag that one thread sets and another one reads.
    private final class Flag: Sendable {
        private let value = Atomic(false)

        var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }

        func set() { value.store(true, ordering: .sequentiallyConsistent) }
    }

    /// Returns a pool on a file with an empty table.
    static func pool(readers: Int = 2) throws -> EmbeddedPool {
        let home = try TemporaryStore(in: .memory)
        var settings = StoreSettings.forTests
        settings.readers = readers
        settings.scanningReaders = 0
        let pool = try StoreConnections(path: home.path, settings: settings).openPool()
        try pool.write { db in
            try db.execute(sql: "CREATE TABLE item (id INTEGER PRIMARY KEY, body)")
        }
        return pool
    }

    private static func count(_ db: EmbeddedConnection) throws -> Int {
        try Int.fetchOne(db.database, sql: "SELECT count(*) FROM item") ?? -1
    }

    static func fill(_ pool: EmbeddedPool, _ ids: ClosedRange<Int>) throws {
        try pool.write { db in
            try db.inTransaction(.immediate) {
                for id in ids {
                    try db.database.execute(
                        sql: "INSERT INTO item VALUES (?, 'a')", arguments: [id])
                }
            }
        }
    }

    // MARK: Transactions

    @Test func `after SQLite rolls back a transaction by itself, nothing more is written in it`()
        throws
    {
        let pool = try Self.pool()
        try pool.write { db in
            try db.begin(.immediate)
            try db.execute(sql: "INSERT INTO item VALUES (1, 'a')")
            #expect(throws: EmbeddedError.self) {
                try db.execute(sql: "INSERT OR ROLLBACK INTO item VALUES (1, 'b')")
            }
            #expect(!db.isInsideTransaction)
            let refusal = #expect(throws: EmbeddedError.self) {
                try db.execute(sql: "INSERT INTO item VALUES (2, 'c')")
            }
            #expect(refusal?.code == SQLITE_ABORT)
            let kept = #expect(throws: EmbeddedError.self) {
                try db.database.cachedStatement(sql: "DELETE FROM item").execute()
            }
            #expect(kept?.code == SQLITE_ABORT)
            #expect(throws: EmbeddedError.self) { try db.commit() }
            try db.rollBack()
            try db.inTransaction(.immediate) {
                try db.execute(sql: "INSERT INTO item VALUES (3, 'd')")
            }
            #expect(try Int.fetchAll(db.database, sql: "SELECT id FROM item") == [3])
        }
        pool.close()
    }

    @Test func `a transaction whose body or commit fails is rolled back`() throws {
        let pool = try Self.pool()
        try pool.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE part (item INTEGER NOT NULL
                        REFERENCES item DEFERRABLE INITIALLY DEFERRED)
                    """)
            #expect(throws: Missed.self) {
                try db.inTransaction(.immediate) {
                    try db.execute(sql: "INSERT INTO item VALUES (1, 'a')")
                    throw Missed()
                }
            }
            let refusal = #expect(throws: EmbeddedError.self) {
                try db.inTransaction(.immediate) {
                    try db.execute(sql: "INSERT INTO part VALUES (7)")
                }
            }
            #expect(refusal?.code == SQLITE_CONSTRAINT)
            #expect(!db.isInsideTransaction)
            #expect(try Self.count(db) == 0)
            #expect(try Int.fetchOne(db.database, sql: "SELECT count(*) FROM part") == 0)
        }
        pool.close()
    }

    // MARK: Cancellation

    @Test func `a running read ends with its task, and its reader stays usable`() async throws {
        let pool = try Self.pool(readers: 1)
        let begun = AsyncStream.makeStream(of: Void.self)
        let reading = Task {
            try await pool.read { db -> Void in
                begun.continuation.yield()
                _ = try Int.fetchOne(db.database, sql: Self.long)
                throw Missed()
            }
        }
        for await _ in begun.stream.prefix(1) {}
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
        let found = try await pool.read { db in try Self.count(db) }
        #expect(found == 0)
        pool.close()
    }

    @Test func `a read cancelled just before a statement begins ends too`() async throws {
        let pool = try Self.pool(readers: 1)
        await #expect(throws: CancellationError.self) {
            try await pool.read { db -> Void in
                let statement = try EmbeddedStatement(Self.long, keeping: false, on: db)
                let rows = try statement.query([])
                // SQLite ignores an interrupt while no statement is running.
                db.turn?.cancel()
                _ = try rows.next()
                throw Missed()
            }
        }
        // The cancellation ended the turn, and the reader is still usable.
        let found = try await pool.read { db in try Self.count(db) }
        #expect(found == 0)
        pool.close()
    }

    @Test func `a read that waits for a reader ends with its task`() async throws {
        let pool = try Self.pool(readers: 1)
        let gate = DispatchSemaphore(value: 0)
        let begun = AsyncStream.makeStream(of: Void.self)
        let reading = Task {
            try await pool.read { db in
                begun.continuation.yield()
                gate.wait()
                return try Self.count(db)
            }
        }
        for await _ in begun.stream.prefix(1) {}
        let waiting = Task { try await pool.read { db in try Self.count(db) } }
        await Turns.pass(20)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let next = Task { try await pool.read { db in try Self.count(db) } }
        gate.signal()
        #expect(try await reading.value == 0)
        #expect(try await next.value == 0)
        pool.close()
    }

    // MARK: Readers

    @Test func `a reader is reused until readers must be replaced`() async throws {
        let pool = try Self.pool(readers: 1)
        try await pool.read { db in try db.execute(sql: "PRAGMA cache_size = 77") }
        let again = try await pool.read { db in
            try Int.fetchOne(db.database, sql: "PRAGMA cache_size")
        }
        #expect(again == 77)
        pool.forgetReaders()
        let other = try await pool.read { db in
            try Int.fetchOne(db.database, sql: "PRAGMA cache_size")
        }
        #expect(other != 77)
        pool.close()
    }

    @Test func `a reader with unread rows sees the next commit`() async throws {
        let pool = try Self.pool(readers: 1)
        try Self.fill(pool, 1...3)
        try await pool.read { db in
            let rows = try db.prepare("SELECT id FROM item", keeping: true).query([])
            _ = try rows.next()
        }
        try Self.fill(pool, 4...5)
        let found = try await pool.read { db in try Self.count(db) }
        #expect(found == 5)
        pool.close()
    }

    @Test func `a reader cannot write`() async throws {
        let pool = try Self.pool()
        let refusal = await #expect(throws: EmbeddedError.self) {
            try await pool.read { db in try db.execute(sql: "DELETE FROM item") }
        }
        #expect(refusal?.code == SQLITE_READONLY)
        pool.close()
    }

    @Test func `closing waits for running reads and leaves no log behind`() async throws {
        let pool = try Self.pool(readers: 1)
        try Self.fill(pool, 1...3)
        let gate = DispatchSemaphore(value: 0)
        let begun = AsyncStream.makeStream(of: Void.self)
        let reading = Task {
            try await pool.read { db in
                begun.continuation.yield()
                gate.wait()
                return try Self.count(db)
            }
        }
        for await _ in begun.stream.prefix(1) {}
        let waiting = Task { try await pool.read { db in try Self.count(db) } }
        try pool.write { db in try StoreConnections.fold(db, after: nil) }
        let closed = Flag()
        let ended = AsyncStream.makeStream(of: Void.self)
        DispatchQueue.global().async {
            pool.close()
            closed.set()
            ended.continuation.yield()
        }
        // The waiting read fails at once, and the running read may finish.
        let refusal = await #expect(throws: EmbeddedError.self) { try await waiting.value }
        #expect(refusal?.code == SQLITE_MISUSE)
        let isWaitedFor = await Turns.keeps { !closed.isSet }
        #expect(isWaitedFor)
        gate.signal()
        #expect(try await reading.value == 3)
        for await _ in ended.stream.prefix(1) {}
        #expect(!FileManager.default.fileExists(atPath: pool.path + "-wal"))
        let late = await #expect(throws: EmbeddedError.self) {
            try await pool.read { db in try Self.count(db) }
        }
        #expect(late?.code == SQLITE_MISUSE)
        // Closing a second time does nothing.
        pool.close()
    }

    // MARK: Statements

    @Test func `a cached statement is read while others run, and each run ends by itself`() throws {
        let pool = try Self.pool()
        try Self.fill(pool, 1...3)
        try pool.write { db in
            let kept = try db.prepare("SELECT id FROM item ORDER BY id", keeping: true)
            let again = try db.prepare("SELECT id FROM item ORDER BY id", keeping: true)
            let isKept = again === kept
            #expect(isKept)
            var before: (any SQLRows)? = try kept.query([])
            _ = try before?.next()
            #expect(before?.integer(at: 0) == 1)
            let rows = try kept.query([])
            _ = try rows.next()
            // Releasing the rows of the previous run does not end this run.
            before = nil
            try db.execute(sql: "INSERT INTO item VALUES (9, NULL)")
            #expect(try Self.count(db) == 4)
            var ids = [rows.integer(at: 0)]
            while try rows.next() { ids.append(rows.integer(at: 0)) }
            #expect(Array(ids.prefix(3)) == [1, 2, 3])
            let isMore = try rows.next()
            #expect(!isMore)
        }
        pool.close()
    }

    @Test func `a cached statement continues to work after the schema has changed`() throws {
        let pool = try Self.pool()
        try Self.fill(pool, 1...1)
        try pool.write { db in
            let kept = try db.database.cachedStatement(sql: "SELECT * FROM item")
            #expect(try Row.fetchOne(kept)?.columnNames == ["id", "body"])
            try db.execute(sql: "ALTER TABLE item ADD COLUMN more TEXT DEFAULT 'm'")
            #expect(try Row.fetchAll(kept).count == 1)
            let row = try #require(try Row.fetchOne(kept))
            let more: String = row["more"]
            #expect(more == "m")
        }
        pool.close()
    }

    @Test func `a text with several statements is refused and not cut short`() throws {
        let pool = try Self.pool()
        try Self.fill(pool, 1...2)
        try pool.write { db in
            let refusal = #expect(throws: EmbeddedError.self) {
                try db.database.execute(
                    sql: "DELETE FROM item WHERE id = 1; DELETE FROM item WHERE id = 2")
            }
            #expect(refusal?.code == SQLITE_MISUSE)
            #expect(try Self.count(db) == 2)
            try db.database.execute(sql: "DELETE FROM item WHERE id = 1;\n")
            #expect(try Self.count(db) == 1)
            try db.execute(sql: "DELETE FROM item; INSERT INTO item VALUES (4, ''); -- the end\n")
            #expect(try Int.fetchAll(db.database, sql: "SELECT id FROM item") == [4])
        }
        pool.close()
    }

    @Test func `a failure has the code and message of its own statement`() throws {
        let pool = try Self.pool()
        try Self.fill(pool, 1...1)
        try pool.write { db in
            let insert = try db.prepare("INSERT INTO item VALUES (?, 'b')", keeping: true)
            let failure = #expect(throws: EmbeddedError.self) { try insert.execute([.integer(1)]) }
            #expect(failure?.code == SQLITE_CONSTRAINT)
            #expect(failure?.message == "UNIQUE constraint failed: item.id")
            // The statement can be used again, and its transaction is over.
            try insert.execute([.integer(2)])
            #expect(!db.isInsideTransaction)
            let few = #expect(throws: EmbeddedError.self) { try insert.execute([]) }
            #expect(few?.code == SQLITE_MISUSE)
            #expect(try Self.count(db) == 2)
        }
        pool.close()
    }

    @Test func `a statement with RETURNING writes even if its rows are not read to the end`() throws
    {
        let pool = try Self.pool()
        try pool.write { db in
            try db.inTransaction(.immediate) {
                let first = try Int.fetchOne(
                    db.database, sql: "INSERT INTO item VALUES (1, 'a'), (2, 'b') RETURNING id")
                #expect(first == 1)
            }
            #expect(try Self.count(db) == 2)
            let changed = try db.database.executeCounting(sql: "UPDATE item SET body = 'c'")
            #expect(changed == 2)
        }
        pool.close()
    }
}
