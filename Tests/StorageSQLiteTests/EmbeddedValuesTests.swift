import Foundation
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Values come back unchanged from a file and from functions.
@Suite struct EmbeddedValuesTests {
    private static func refuse(_ value: SQLValue, _ text: String) throws -> SQLValue {
        throw EmbeddedConnectionTests.Missed()
    }

    private static func empty(_ value: SQLValue, _ text: String) -> SQLValue { .bytes(Data()) }

    private static func echo(_ value: SQLValue, _ text: String) -> SQLValue { value }

    @Test func `texts with NUL, empty texts and empty blobs are stored unchanged`() throws {
        let pool = try EmbeddedConnectionTests.pool()
        let texts = ["", "a\0b", "\0", String(repeating: "é", count: 100_000)]
        try pool.write { db in
            for text in texts {
                try db.database.execute(
                    sql: "INSERT INTO item (body) VALUES (?)", arguments: [text])
            }
            let found = try String.fetchAll(
                db.database, sql: "SELECT body FROM item ORDER BY id")
            #expect(found == texts)
            let sizes = try Int.fetchAll(
                db.database, sql: "SELECT length(CAST(body AS BLOB)) FROM item ORDER BY id")
            #expect(sizes == texts.map(\.utf8.count))
            try db.execute(sql: "DELETE FROM item")
            try db.database.execute(
                sql: "INSERT INTO item VALUES (1, ?)", arguments: [Data()])
            let type = try String.fetchOne(db.database, sql: "SELECT typeof(body) FROM item")
            #expect(type == "blob")
            let blob = try Data.fetchOne(db.database, sql: "SELECT body FROM item")
            #expect(blob == Data())
        }
        pool.close()
    }

    @Test func `an error thrown by a function is rethrown, and nothing is changed`() throws {
        let pool = try EmbeddedConnectionTests.pool()
        try EmbeddedConnectionTests.fill(pool, 1...3)
        try pool.write { (db) throws in
            #expect(throws: EmbeddedConnectionTests.Missed.self) {
                try db.withFunction(named: "refuse", Self.refuse) {
                    try db.execute(sql: "UPDATE item SET body = refuse(body, 'p')")
                }
            }
            #expect(
                try String.fetchAll(db.database, sql: "SELECT body FROM item") == ["a", "a", "a"])
            // The function exists only during the call.
            #expect(throws: EmbeddedError.self) {
                try db.execute(sql: "SELECT refuse('a', 'p')")
            }
        }
        pool.close()
    }

    @Test func `an empty blob returned by a function is not NULL`() throws {
        let pool = try EmbeddedConnectionTests.pool()
        try pool.write { db in
            let found = try db.withFunction(named: "emptied", Self.empty) {
                try String.fetchOne(db.database, sql: "SELECT typeof(emptied(x'01', 'p'))")
            }
            #expect(found == "blob")
            let text = try db.withFunction(named: "echo", Self.echo) {
                try String.fetchOne(
                    db.database, sql: "SELECT echo(?, 'p')", arguments: ["a\0b"])
            }
            #expect(text == "a\0b")
        }
        pool.close()
    }
}
