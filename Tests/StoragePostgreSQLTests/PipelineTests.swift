import Foundation
import PostgresLink
import RelayTestKit
import Testing

@testable import StoragePostgreSQL

/// Statements that are sent together to a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct PipelineTests {
    private static func pipeline() throws -> PostgresPipeline {
        let place = try TestPlace()
        let connection = try place.session().connect()
        try connection.query(
            """
            CREATE SCHEMA \(place.schema);
            CREATE TABLE thing (id bigint PRIMARY KEY, name text, body bytea, share float8)
            """)
        return try PostgresPipeline(connection, patience: .seconds(15))
    }

    @Test func `a statement without an awaited answer costs no round trip`() throws {
        let pipeline = try Self.pipeline()
        try pipeline.queue("BEGIN")
        for number in 1...100 {
            try pipeline.queue(
                "INSERT INTO thing (id, name) VALUES ($1, $2)",
                [.integer(Int64(number)), .text("n\(number)")])
        }
        let rows = try pipeline.fetch("SELECT count(*), sum(id) FROM thing")
        #expect(pipeline.roundTrips == 1)
        #expect(rows[0, 0] == .integer(100))
        #expect(rows[0, 1] == .integer(5050))
        #expect(pipeline.isInsideTransaction)
        try pipeline.queue("COMMIT")
        try pipeline.settle()
        #expect(!pipeline.isInsideTransaction)
        #expect(pipeline.roundTrips == 2)
    }

    /// The body of a webhook is such a statement: its insertion returns a number.
    @Test(arguments: [(0, 2 << 20), ((1 << 20) - 600, 600)])
    func `a statement that fills the buffer is answered`(queued: Int, asked: Int) throws {
        let pipeline = try Self.pipeline()
        if queued > 0 {
            try pipeline.queue(
                "INSERT INTO thing (id, body) VALUES (1, $1)", [.bytes(Data(count: queued))])
        }
        let rows = try pipeline.fetch("SELECT length($1)", [.bytes(Data(count: asked))])
        #expect(rows[0, 0] == .integer(Int64(asked)))
        #expect(pipeline.roundTrips == 1)
    }

    @Test func `a statement with many sets of values is answered for each`() throws {
        let pipeline = try Self.pipeline()
        try pipeline.queue("INSERT INTO thing (id) VALUES (7)")
        let numbers = (0..<200).map { Int64($0) }
        let found = try pipeline.fetchEach(
            "SELECT $1 + count(*) FROM thing", numbers.map { [PostgresValue.integer($0)] })
        let sums: [PostgresValue] = found.map { $0[0, 0] }
        #expect(sums == numbers.map { PostgresValue.integer($0 + 1) })
        #expect(pipeline.roundTrips == 4)
        #expect(try pipeline.fetchEach("SELECT $1", []).isEmpty)
        // Values of other types need another statement, which is prepared beside the first.
        let kinds: [[PostgresValue]] = [[.integer(1)], [.null(.text)], [.integer(3)]]
        let mixed = try pipeline.fetchEach("SELECT coalesce($1::bigint, 0)", kinds)
        let answers: [PostgresValue] = mixed.map { $0[0, 0] }
        #expect(answers == [.integer(1), .integer(0), .integer(3)])
        let refusal = #expect(throws: PostgresError.self) {
            _ = try pipeline.fetchEach(
                "SELECT 1 / $1", [[.integer(1)], [.integer(0)], [.integer(1)]])
        }
        #expect(refusal?.state == "22012" && !pipeline.isBroken)
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(1))
    }

    @Test func `values come back unchanged`() throws {
        let pipeline = try Self.pipeline()
        try pipeline.queue(
            "INSERT INTO thing VALUES ($1, $2, $3, $4), ($5, $6, $7, $8)",
            [
                .integer(.min), .text("Grüße"), .bytes(Data([0, 255])), .real(0.25), .integer(.max),
                .null(.text), .bytes(Data()), .null(.real),
            ])
        let rows = try pipeline.fetch(
            #"SELECT id, name, body, share AS "Share" FROM thing ORDER BY id"#)
        #expect(rows.count == 2)
        let first: [PostgresValue] = (0..<4).map { rows[0, $0] }
        #expect(
            first == [.integer(.min), .text("Grüße"), .bytes(Data([0, 255])), .real(0.25)])
        let second: [PostgresValue] = (0..<4).map { rows[1, $0] }
        #expect(
            second == [.integer(.max), .null(.text), .bytes(Data()), .null(.text)])
        #expect(rows.names == ["id", "name", "body", "Share"])
        let changed = try pipeline.fetch("UPDATE thing SET name = $1", [.text("x")])
        #expect(changed.changed == 2)
    }

    @Test(arguments: [
        ("0", PostgresValue.integer(0)), ("12345678", .integer(12_345_678)),
        ("10000", .integer(10_000)),
        ("-20000", .integer(-20_000)), ("9223372036854775807", .integer(.max)),
        ("1.5", .real(1.5)), ("-0.25", .real(-0.25)), ("100000000000000000000", .real(1e20)),
    ])
    func `a whole numeric becomes an integer`(text: String, value: PostgresValue) throws {
        let pipeline = try Self.pipeline()
        #expect(try pipeline.fetch("SELECT \(text)::numeric")[0, 0] == value)
    }

    @Test func `U+0000 becomes U+FFFD`() throws {
        let pipeline = try Self.pipeline()
        let rows = try pipeline.fetch("SELECT $1::text", [.text("a\u{0}b")])
        #expect(rows[0, 0] == .text("a\u{FFFD}b"))
    }

    @Test func `an error of a queued statement comes with the next answer and undoes all`() throws {
        let pipeline = try Self.pipeline()
        try pipeline.queue("INSERT INTO thing (id) VALUES ($1)", [.integer(1)])
        try pipeline.queue("INSERT INTO thing (id) VALUES ($1)", [.integer(1)])
        let refusal = #expect(throws: PostgresError.self) {
            try pipeline.fetch("SELECT count(*) FROM thing")
        }
        #expect(refusal?.state == "23505")
        // The failed transaction undid the preparation of the statement, so it is prepared again.
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(0))
        #expect(!pipeline.isBroken)
    }

    @Test func `a transaction with an error is rolled back and the connection stays usable`() throws
    {
        let pipeline = try Self.pipeline()
        try pipeline.queue("BEGIN")
        try pipeline.queue("INSERT INTO thing (id) VALUES ($1)", [.integer(1)])
        #expect(throws: PostgresError.self) { try pipeline.fetch("SELECT 1 / 0") }
        #expect(pipeline.isInsideTransaction)
        try pipeline.queue("ROLLBACK")
        try pipeline.settle()
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(0))
    }

    @Test func `a large queue is sent in parts without a deadlock`() throws {
        let pipeline = try Self.pipeline()
        let body = Data(repeating: 7, count: 100_000)
        try pipeline.queue("BEGIN")
        for number in 1...60 {
            try pipeline.queue(
                "INSERT INTO thing (id, body) VALUES ($1, $2) RETURNING body",
                [.integer(Int64(number)), .bytes(body)])
        }
        let rows = try pipeline.fetch("SELECT sum(length(body)) FROM thing")
        #expect(rows[0, 0] == .integer(6_000_000))
        #expect((2...20).contains(pipeline.roundTrips))
    }

    @Test func `sent statements are answered before later ones`() throws {
        let pipeline = try Self.pipeline()
        try pipeline.queue("INSERT INTO thing (id) VALUES (1)")
        try pipeline.send()
        #expect(try pipeline.fetch("SELECT count(*) FROM thing")[0, 0] == .integer(1))
        try pipeline.queue("SELECT 1 / 0")
        try pipeline.send()
        #expect(throws: PostgresError.self) { try pipeline.settle() }
        #expect(try pipeline.fetch("SELECT 2")[0, 0] == .integer(2))
    }

    @Test func `a connection that the server ended counts as broken`() throws {
        let pipeline = try Self.pipeline()
        let other = try Self.pipeline()
        _ = try other.fetch(
            "SELECT pg_terminate_backend($1::int)",
            [.integer(Int64(pipeline.connection.serverProcess))])
        let end = #expect(throws: PostgresError.self) { try pipeline.fetch("SELECT 1") }
        #expect(end?.verdict == .lost)
        #expect(pipeline.isBroken)
    }

    @Test func `warnings are counted in any language`() throws {
        let pipeline = try Self.pipeline()
        #expect(pipeline.connection.warnings == 0)
        try pipeline.queue("COMMIT")
        try pipeline.settle()
        #expect(pipeline.connection.warnings == 1)
        #expect(pipeline.connection.warningsOfWhatLacks == 0)
        // PostgreSQL 18 warns so when it skips changes that were made while there was no
        // publication.
        try pipeline.queue("DO $$ BEGIN RAISE WARNING 'x' USING ERRCODE = '55000'; END $$")
        try pipeline.queue("DO $$ BEGIN RAISE NOTICE 'x' USING ERRCODE = '55000'; END $$")
        try pipeline.settle()
        #expect(pipeline.connection.warnings == 2)
        #expect(pipeline.connection.warningsOfWhatLacks == 1)
    }
}
