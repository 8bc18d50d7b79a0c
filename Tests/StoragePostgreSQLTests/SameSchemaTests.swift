import GRDB
import Migrations
import PostgresLink
import RelayTestKit
import Testing

@testable import StoragePostgreSQL

/// Both engines have the tables and columns that the shared statements name.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct SameSchemaTests {
    /// A column with its type and constraints.
    private struct Column: Hashable, CustomStringConvertible {
        let table: String
        let name: String
        let type: String
        let isRequired: Bool

        var description: String { "\(table).\(name) \(type)\(isRequired ? " NOT NULL" : "")" }
    }

    /// What only the file has: the flag for the witness, and the counter of commits.
    private static let ofTheFileAlone: Set<String> = ["store.iswitnessed", "shardhead.commits"]

    private static func embedded() throws -> [Column] {
        let queue = try DatabaseQueue()
        return try queue.write { db in
            for migration in Migration.released { try db.execute(sql: migration.sql) }
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT entity.name AS "table", info.name, info.type,
                        info."notnull" OR info.pk > 0 AS isRequired
                    FROM sqlite_schema AS entity JOIN pragma_table_info(entity.name) AS info
                    WHERE entity.type IN ('table', 'view') AND entity.name NOT LIKE 'sqlite%'
                    """)
            return rows.map { row in
                Column(
                    table: (row["table"] as String).lowercased(),
                    name: (row["name"] as String).lowercased(), type: row["type"],
                    isRequired: row["isRequired"])
            }
        }
    }

    private static func shared() throws -> [Column] {
        let place = try TestPlace()
        let connection = try place.session().connect()
        _ = try PostgresSchema(
            place: try place.place(), migrations: Migration.releasedOnPostgreSQL
        ).apply(connection, makesSchema: true)
        let rows = try connection.query(
            """
            SELECT table_name, column_name, data_type, is_nullable, collation_name
            FROM information_schema.columns WHERE table_schema = $1
            """, [place.schema])
        return rows.map { row in
            let type =
                switch (row[2], row[4]) {
                case ("bigint", _): "INTEGER"
                case ("text", "C"): "TEXT"
                case ("bytea", _): "BLOB"
                default: row[2] ?? ""
                }
            return Column(
                table: row[0] ?? "", name: row[1] ?? "", type: type, isRequired: row[3] == "NO")
        }
    }

    @Test func `both engines have the same tables and columns`() throws {
        let shared = Set(try Self.shared())
        let views: Set<String> = ["recordholding", "shardhead"]
        let names = Set(shared.map { "\($0.table).\($0.name)" })
        let missing = try Self.embedded().filter { column in
            let name = "\(column.table).\(column.name)"
            if Self.ofTheFileAlone.contains(name) { return false }
            return views.contains(column.table) ? !names.contains(name) : !shared.contains(column)
        }
        #expect(missing.map(\.description).sorted() == [])
    }

    @Test func `both engines have the same indexes`() throws {
        let queue = try DatabaseQueue()
        let embedded = try queue.write { db in
            for migration in Migration.released { try db.execute(sql: migration.sql) }
            return try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
        }
        let place = try TestPlace()
        let connection = try place.session().connect()
        _ = try PostgresSchema(
            place: try place.place(), migrations: Migration.releasedOnPostgreSQL
        ).apply(connection, makesSchema: true)
        let shared = try connection.query(
            "SELECT indexname FROM pg_indexes WHERE schemaname = $1", [place.schema])
        #expect(Set(embedded.map { $0.lowercased() }).subtracting(shared.map { $0[0] ?? "" }) == [])
    }
}
