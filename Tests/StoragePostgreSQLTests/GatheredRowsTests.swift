import Foundation
import PostgresLink
import RelayTestKit
import Testing

@testable import StoragePostgreSQL

/// Rows and lookups that one statement does for many.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct GatheredRowsTests {
    private let pipeline: PostgresPipeline

    init() throws {
        let place = try TestPlace()
        let connection = try place.session().connect()
        try connection.query(
            """
            CREATE SCHEMA \(place.schema);
            CREATE TABLE thing (
                id bigint, name text COLLATE "C", body bytea, share float8, note text,
                PRIMARY KEY (id, name));
            CREATE TABLE written (number bigserial, id bigint)
            """)
        pipeline = try PostgresPipeline(connection, patience: .seconds(15))
    }

    private static let insert = """
        INSERT INTO thing (id, name, body, share, note) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id, name) DO UPDATE SET note = excluded.note
        """

    private func gather(_ id: Int64, _ name: String, note: String?) throws {
        try pipeline.gather(
            Self.insert,
            [
                .integer(id), .text(name), .bytes(Data([0, UInt8(id & 255)])), .real(0.5),
                note.map { .text($0) } ?? .null(.text),
            ], keyColumns: 2)
    }

    @Test func `gathered rows are inserted in their order and before the next statement`() throws {
        for number in 1...300 {
            try gather(Int64(number), "n\(number)", note: number.isMultiple(of: 2) ? "even" : nil)
            try pipeline.gather(
                "INSERT INTO written (id) VALUES ($1)", [.integer(Int64(number))], keyColumns: 0)
        }
        let rows = try pipeline.fetch(
            """
            SELECT count(*), count(note), sum(length(body)), sum(share),
                (SELECT count(*) FROM written WHERE id = number)
            FROM thing
            """)
        let found: [PostgresValue] = (0..<5).map { rows[0, $0] }
        #expect(
            found == [.integer(300), .integer(150), .integer(600), .real(150), .integer(300)])
        #expect(pipeline.roundTrips == 1)
    }

    @Test func `a row that is gathered again wins over its earlier self`() throws {
        for number in 1...10 {
            try gather(1, "same", note: "\(number)")
            // The server stores U+0000 as U+FFFD, so both names are one row.
            try gather(2, number.isMultiple(of: 2) ? "a\u{0}" : "a\u{FFFD}", note: "\(number)")
            // These are two rows: the letters are equal only canonically.
            try gather(3, number.isMultiple(of: 2) ? "\u{E9}" : "e\u{301}", note: "\(number)")
        }
        let rows = try pipeline.fetch("SELECT id, note FROM thing ORDER BY id, note")
        let found: [[PostgresValue]] = (0..<rows.count).map { [rows[$0, 0], rows[$0, 1]] }
        #expect(
            found == [
                [.integer(1), .text("10")], [.integer(2), .text("10")], [.integer(3), .text("10")],
                [.integer(3), .text("9")],
            ])
    }

    @Test func `rows of other kinds are a statement of their own`() throws {
        try pipeline.gather(
            "INSERT INTO thing (id, name) VALUES ($1, $2)", [.integer(1), .text("a")],
            keyColumns: 0)
        try pipeline.gather(
            "INSERT INTO thing (id, name) VALUES ($1, $2)", [.null(.real), .text("b")],
            keyColumns: 0)
        let refusal = #expect(throws: PostgresError.self) { try pipeline.settle() }
        // It is the second row that the server refuses, for its NULL.
        #expect(refusal?.state == "23502")
    }

    @Test func `a failure of gathered rows undoes the transaction`() throws {
        try pipeline.queue("BEGIN")
        for id in [1, 2, 1] {
            try pipeline.gather(
                "INSERT INTO thing (id, name) VALUES ($1, $2)", [.integer(Int64(id)), .text("a")],
                keyColumns: 0)
        }
        let refusal = #expect(throws: PostgresError.self) { try pipeline.settle() }
        #expect(refusal?.state == "23505")
        #expect(try pipeline.fetch("ROLLBACK").tag == "ROLLBACK")
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(0))
    }

    @Test func `rows that are dropped are not inserted`() throws {
        try gather(1, "a", note: nil)
        pipeline.dropGathered()
        try pipeline.settle()
        #expect(pipeline.roundTrips == 0)
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(0))
    }

    @Test func `many rows are sent before they fill the memory`() throws {
        let body = PostgresValue.bytes(Data(count: 100_000))
        for number in 1...40 {
            try pipeline.gather(
                "INSERT INTO thing (id, name, body) VALUES ($1, $2, $3)",
                [.integer(Int64(number)), .text("a"), body], keyColumns: 0)
        }
        #expect(pipeline.roundTrips > 0)
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(40))
    }

    @Test func `a query with many sets of values finds the rows of each in their order`() throws {
        for number in 1...200 {
            try gather(Int64(number % 70), "n\(1000 + number)", note: "it's \(number) $1")
        }
        let sets = (0..<140).map { number -> [PostgresValue] in
            [.integer(Int64(number)), .text("n1150"), .null(.text)]
        }
        let found = try pipeline.fetchEach(
            """
            SELECT name, '$1 it''s', note FROM thing
            WHERE id = $1 AND name <= $2 AND $3::text IS NULL ORDER BY name DESC LIMIT 2
            """, sets)
        #expect(found.count == 140)
        #expect(found[1].columns == 3)
        let names: [PostgresValue] = (0..<found[1].count).map { found[1][$0, 0] }
        #expect(names == [.text("n1141"), .text("n1071")])
        let isQuoted = (0..<2).allSatisfy { found[1][$0, 1] == .text("$1 it's") }
        #expect(isQuoted)
        #expect(found[100].count == 0)
        // One round trip for each 64 sets.
        #expect(pipeline.roundTrips == 3)
    }

    @Test func `a query with its own limits runs for many sets`() throws {
        for number in 1...9 { try gather(Int64(number % 3), "n\(number)", note: nil) }
        let sets = (0..<3).map { number -> [PostgresValue] in
            [.integer(Int64(number)), .integer(1), .integer(Int64(number))]
        }
        let found = try pipeline.fetchEach(
            "SELECT name FROM thing WHERE id = $1 ORDER BY name LIMIT $2 OFFSET $3", sets)
        #expect(found.map(\.count) == [1, 1, 1])
        let names: [PostgresValue] = found.map { $0[0, 0] }
        #expect(names == [.text("n3"), .text("n4"), .text("n8")])
    }
}
