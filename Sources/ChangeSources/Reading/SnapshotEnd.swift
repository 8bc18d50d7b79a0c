package import RelayModel

/// The report that a follower has sent all rows of these tables as they were at one moment.
package struct SnapshotEnd: Sendable, Hashable {
    /// A table in the database.
    package struct Table: Sendable, Hashable {
        /// The schema that contains the table.
        package let schema: String
        /// The name of the table, without the schema.
        package let name: String

        package init(schema: String, name: String) {
            self.schema = schema
            self.name = name
        }
    }

    /// The name of the database.
    package var database: String?
    /// The tables of which all rows were reported.
    package var tables: [Table]
    /// Tables of which the relay parked some rows.
    ///
    /// A parked row may be any record, so no record of these tables' types is deleted.
    package var incomplete: [Table] = []
    /// The version of all rows of the snapshot.
    ///
    /// It is higher than the version of every row before the snapshot, and at most that of every
    /// change after it.
    package var version: Int64

    package init(database: String?, tables: [Table], version: Int64) {
        self.database = database
        self.tables = tables
        self.version = version
    }

    /// The maximum number of tables in one request.
    ///
    /// A thousand names take some hundred kilobytes at most, of the 4 MiB that a request may have.
    private static let tablesAtOnce = 1000

    /// Returns the end with `some` of its tables moved to the incomplete ones.
    package func without(_ some: Set<Table>) -> SnapshotEnd {
        var end = self
        end.tables = tables.filter { !some.contains($0) }
        end.incomplete = tables.filter { some.contains($0) }
        return end
    }

    /// The end in parts that each fit one request; empty if there are more incomplete tables than
    /// one request may name.
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
    /// The word that a posted end has in the place of a row's operation.
    static let word = "complete"

    /// The JSON form that is posted; parsing it returns an equal end.
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

    /// Parses the posted form; returns `nil` if it is the change of a row.
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
