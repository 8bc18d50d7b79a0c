import RelayModel
import Testing

@testable import ChangeSources

/// Warnings about tables and columns that a mapping names but that are unknown.
@Suite struct MappingNameTests {
    private static func type(_ name: String) throws -> RecordType {
        try #require(RecordType(rawValue: name))
    }

    private static func unmet(
        _ mapping: String, _ types: [String: Set<String>] = [:], followed: [String] = []
    ) throws -> [String] {
        var fields: [RecordType: Set<String>] = [:]
        for (name, columns) in types { fields[try type(name)] = columns }
        return try source("postgres", mapping: mapping).mapping.unmet(
            in: SeenTables(fields: fields, followed: followed))
    }

    @Test func `an unknown name is warned about, with the nearest known one`() throws {
        let tables = #"{"owner": {"column": "user_id"}, "tables": {"prodcts": {"owner": null}}}"#
        let sentence =
            #"mapping.tables: no received change and no followed table has the table "prodcts""#
        let meant = sentence + #"; did you mean "products"?"#
        #expect(try Self.unmet(tables, followed: ["public.products", "public.todos"]) == [meant])
        #expect(try Self.unmet(tables, ["products": ["id"]]) == [meant])
        #expect(try Self.unmet(tables, ["cats": ["id"]]) == [sentence])
        #expect(
            try Self.unmet(
                #"{"recordTypes": {"public.ordres": "Order"}, "keys": {"shop.x": "id"}}"#,
                ["orders": ["id"]], followed: ["public.orders"]) == [
                    "mapping.recordTypes: no received change and no followed table has the table "
                        + #""public.ordres"; did you mean "public.orders"?"#,
                    "mapping.keys: no received change and no followed table has the table "
                        + "\"shop.x\"",
                ])
        #expect(
            try Self.unmet(#"{"ignoredTables": ["logs", "log"]}"#, followed: ["public.logs"]) == [
                "mapping.ignoredTables: no received change and no followed table has the table "
                    + "\"log\"; did you mean \"logs\"?"
            ])
        #expect(
            try Self.unmet(
                #"{"columns": {"orders.placed_att": "timestamp", "orders.at": "timestamp"}}"#,
                ["orders": ["placed_at", "at"]]) == [
                    "mapping.columns: no received change and no followed table has the column "
                        + "\"orders.placed_att\""
                ])
    }

    @Test(arguments: [
        #"{"tables": {"todos": {"owner": null}, "public.todos": {"owner": null}}}"#,
        #"{"columns": {"due": "timestamp", "todos.due": "timestamp"}}"#,
        #"{"recordTypes": {"public.orders": "Order"}, "tables": {"orders": {"owner": null}}}"#,
        #"{"recordTypes": {"orders": "Order"}, "tables": {"shop.orders": {"owner": null}}}"#,
        #"{"recordTypeTemplate": "{schema}_{table}", "tables": {"users": {"owner": null}}}"#,
        #"{"ignoredTables": ["whatever"]}"#,
    ]) func `a known name is not warned about`(mapping: String) throws {
        let types: [String: Set<String>] = [
            "todos": ["due"], "Order": ["id"], "public_users": ["id"],
        ]
        #expect(try Self.unmet(mapping, types) == [])
        // If nothing is known, there is no warning.
        #expect(try Self.unmet(mapping) == [])
    }

    @Test func `the warnings about many unknown names are bounded, and dots cost nothing`() throws {
        let many = (0..<1000).map { "\"\($0)\(String(repeating: ".", count: 500))\": \"T\"" }
        let told = try Self.unmet(
            "{\"recordTypes\": {\(many.joined(separator: ", "))}}", ["todos": ["due"]])
        #expect(told.count == 20)
        #expect(
            try Self.unmet(#"{"columns": {"todos.a.b.c.d.due": "timestamp"}}"#, ["todos": ["due"]])
                == [])
    }
}
