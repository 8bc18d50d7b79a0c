import RelayModel
import Testing

@testable import ChangeSources

/// The end of a snapshot, as a follower reports it.
@Suite struct SnapshotEndTests {
    private static let end = SnapshotEnd(
        database: "shop",
        tables: [
            SnapshotEnd.Table(schema: "public", name: "orders"),
            SnapshotEnd.Table(schema: "public", name: "logs"),
        ], version: 7)

    private static func posted(_ mapping: String) throws -> [String] {
        decoded(
            try source("postgres", mapping: mapping), webhook(JSONValue.object(end.json).text))
    }

    @Test func `the types of the tables end, whether it is posted or handed over`() throws {
        let mapping = #"{"recordTypes": {"public.orders": "Order"}, "ignoredTables": ["logs"]}"#
        #expect(try Self.posted(mapping) == [#"ended: ["Order"] before 7"#])
        let batch = try source("postgres", mapping: mapping).decode(Self.end)
        #expect(batch.items.map(describe) == [#"ended: ["Order"] before 7"#])
    }

    @Test func `nothing follows where the version is not that of the snapshot`() throws {
        let reason = "ignored: no record type of the snapshot takes its versions from positions"
        #expect(try Self.posted(#"{"version": {"column": "changed_at"}}"#) == [reason])
        // Of two tables that make one type, one is enough.
        let shared = #"""
            {"recordTypes": {"public.orders": "Order", "public.logs": "Order"},
             "tables": {"logs": {"version": {"column": "changed_at"}}}}
            """#
        #expect(try Self.posted(shared) == [reason])
    }

    /// A long end comes in parts, and one of them names the other table.
    @Test(arguments: [
        #"{"recordTypes": {"public.orders": "Order", "old.past": "Order"}, "#
            + #""tables": {"past": {"version": {"column": "changed_at"}}}}"#,
        #"{"recordTypes": {"public.orders": "Order", "old.past": "Order"}, "#
            + #""tables": {"old.past": {"version": {"column": "changed_at"}}}}"#,
        #"{"recordTypes": {"public.orders": "past"}, "#
            + #""tables": {"old.past": {"version": {"column": "changed_at"}}}}"#,
        #"{"recordTypes": {"public.orders": "Order", "old.past": "Order"}, "#
            + #""version": {"column": "changed_at"}, "#
            + #""tables": {"orders": {"version": null}, "logs": {"version": null}}}"#,
    ])
    func `a type stays that a table with a version column makes, though it is not named`(
        mapping: String
    ) throws {
        #expect(try Self.posted(mapping) == [#"ended: ["logs"] before 7"#])
    }

    /// A row that was parked is some record, and nobody knows which.
    @Test func `types of tables of which rows were parked stay as they are`() throws {
        let end = Self.end.without([SnapshotEnd.Table(schema: "public", name: "logs")])
        #expect(end.tables.map(\.name) == ["orders"])
        func posted(_ mapping: String) throws -> [String] {
            decoded(
                try source("postgres", mapping: mapping), webhook(JSONValue.object(end.json).text))
        }
        #expect(try posted("{}") == [#"ended: ["orders"] before 7"#])
        let shared = #"{"recordTypes": {"public.orders": "Order", "public.logs": "Order"}}"#
        #expect(
            try posted(shared) == [
                "ignored: no record type of the snapshot takes its versions from positions"
            ])
        #expect(Self.end.without(Set(Self.end.tables)).parts == [])
    }

    /// So a follower posts what is too long for any request.
    @Test(arguments: ["create", "update"])
    func `a change with the key alone is parked`(operation: String) throws {
        let body =
            #"[{"operation":"\#(operation)","schema":"public","table":"t","key":["id"],"#
            + #""before":{"id":7},"beforeCompleteness":"partial","position":"p/1"}]"#
        #expect(
            decoded(try source("postgres"), webhook(body)) == [
                "parked: [0]: a change that is no deletion needs the row after it"
            ])
    }

    @Test func `many tables end in parts`() {
        var end = Self.end
        end.tables = (0..<2500).map { SnapshotEnd.Table(schema: "public", name: "t\($0)") }
        #expect(end.parts.map(\.tables.count) == [1000, 1000, 500])
        #expect(end.parts.flatMap(\.tables) == end.tables)
        end.tables = []
        #expect(end.parts == [])
    }
}
