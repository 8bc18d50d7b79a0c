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

    @Test func `the end covers the types of the tables, whether posted or handed over`() throws {
        let mapping = #"{"recordTypes": {"public.orders": "Order"}, "ignoredTables": ["logs"]}"#
        #expect(try Self.posted(mapping) == [#"ended: ["Order"] before 7"#])
        let batch = try source("postgres", mapping: mapping).decode(Self.end)
        #expect(batch.items.map(describe) == [#"ended: ["Order"] before 7"#])
    }

    @Test func `no end follows if the version is not that of the snapshot`() throws {
        let reason = "ignored: no record type of the snapshot takes its versions from positions"
        #expect(try Self.posted(#"{"version": {"column": "changed_at"}}"#) == [reason])
        // If two tables map to one type, one of them is enough.
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
    func `a type that another table with a version column makes is left out`(
        mapping: String
    ) throws {
        #expect(try Self.posted(mapping) == [#"ended: ["logs"] before 7"#])
    }

    /// A parked row belongs to an unknown record, which must not be deleted.
    @Test func `the types of tables with parked rows are left out`() throws {
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

    /// A follower posts a row this way if it is too long for any request.
    @Test(arguments: ["create", "update"])
    func `a change with only its key is parked`(operation: String) throws {
        let body =
            #"[{"operation":"\#(operation)","schema":"public","table":"t","key":["id"],"#
            + #""before":{"id":7},"beforeCompleteness":"partial","position":"p/1"}]"#
        #expect(
            decoded(try source("postgres"), webhook(body)) == [
                "parked: [0]: \"after\" is required unless the operation is a deletion"
            ])
    }

    @Test func `many tables end in several parts`() {
        var end = Self.end
        end.tables = (0..<2500).map { SnapshotEnd.Table(schema: "public", name: "t\($0)") }
        #expect(end.parts.map(\.tables.count) == [1000, 1000, 500])
        #expect(end.parts.flatMap(\.tables) == end.tables)
        end.tables = []
        #expect(end.parts == [])
    }
}
