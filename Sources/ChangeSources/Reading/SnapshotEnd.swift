package import RelayModel

/// The end of a snapshot: a follower has reported all rows of these tables as they were.
package struct SnapshotEnd: Sendable, Hashable {
    /// A table all of whose rows were reported.
    package struct Table: Sendable, Hashable {
        /// The schema in which it is.
        package let schema: String
        /// Its name, without the schema.
        package let name: String

        package init(schema: String, name: String) {
            self.schema = schema
            self.name = name
        }
    }

    /// The name of the database.
    package var database: String?
    /// The tables.
    package var tables: [Table]
    /// Tables of which some rows were parked, so that nobody knows which records they are: what is
    /// kept of their types stays.
    package var incomplete: [Table] = []
    /// The version of all rows of the snapshot, which is higher than those of all rows before it
    /// and not higher than those of the changes after it.
    package var version: Int64

    package init(database: String?, tables: [Table], version: Int64) {
        self.database = database
        self.tables = tables
        self.version = version
    }

    /// Tables that are told together: a request of so many names is far below its limit.
    private static let tablesAtOnce = 1000

    /// The same where some of the tables are incomplete.
    package func without(_ some: Set<Table>) -> SnapshotEnd {
        var end = self
        end.tables = tables.filter { !some.contains($0) }
        end.incomplete = tables.filter { some.contains($0) }
        return end
    }

    /// The same in parts that each fit a request; none if more tables are incomplete than one
    /// request names.
    package var parts: [SnapshotEnd] {
        guard incomplete.count <= Self.tablesAtOnce else { return [] }
        return stride(from: 0, to: tables.count, by: Self.tablesAtOnce).map { start in
            var part = self
            part.tables = Array(tables[start...].prefix(Self.tablesAtOnce))
            return part
        }
    }
}

extension SnapshotEnd {
    /// What stands in the place of the operation of a row.
    static let word = "complete"

    /// The form in which it is posted; reading it again gives an equal one.
    package var json: JSONObject {
        var object: JSONObject = ["operation": .string(Self.word)]
        object["database"] = database.map { .string($0) }
        object["tables"] = Self.list(tables)
        if !incomplete.isEmpty { object["incomplete"] = Self.list(incomplete) }
        object["version"] = .integer(version)
        return object
    }

    private static func list(_ tables: [Table]) -> JSONValue {
        .array(tables.map { ["schema": .string($0.schema), "table": .string($0.name)] })
    }

    /// Reads the form in which it is posted; `nil` if it is the change of a row.
    init?(_ reader: JSONReader) throws(JSONContractError) {
        guard try reader.string("operation") == Self.word else { return nil }
        try reader.allowOnly(["operation", "database", "tables", "incomplete", "version"])
        self.init(
            database: try reader.string("database"),
            tables: try reader.require("tables", try Self.tables("tables", reader)),
            version: try reader.require("version", try reader.integer("version")))
        incomplete = try Self.tables("incomplete", reader) ?? []
    }

    private static func tables(
        _ name: String, _ reader: JSONReader
    ) throws(JSONContractError) -> [Table]? {
        guard let elements = try reader.array(name) else { return nil }
        var tables: [Table] = []
        for (index, element) in elements.enumerated() {
            let table = try JSONReader(element, path: "\(reader.path(of: name))[\(index)]")
            try table.allowOnly(["schema", "table"])
            tables.append(
                Table(
                    schema: try table.require("schema", try table.string("schema")),
                    name: try table.require("table", try table.string("table"))))
        }
        return tables
    }
}
