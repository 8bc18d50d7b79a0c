/// A query that runs once for each of several sets of values, as one statement.
///
/// Each execution of a statement of its own costs the server several times as much as the query
/// itself, if that finds a row by its key.
struct RepeatedQuery {
    /// The query.
    let sql: String
    /// The values of each parameter.
    private let columns: [PostgresArray]

    /// Joins the sets; `nil` if `sql` is not a query, or the sets differ in their kinds.
    init?(_ sql: String, _ sets: some Collection<[PostgresValue]>) {
        guard sql.hasPrefix("SELECT"), let first = sets.first, !first.isEmpty else { return nil }
        var columns = first.map { PostgresArray(of: $0.kind) }
        for set in sets {
            guard set.count == columns.count, zip(set, columns).allSatisfy({ $0.kind == $1.kind })
            else { return nil }
            for (index, value) in set.enumerated() { columns[index].append(value) }
        }
        self.sql = sql
        self.columns = columns
    }

    /// The parameters of ``statement``.
    var parameters: PostgresParameters { PostgresParameters(columns) }

    /// The statement, which takes an array for each parameter of the query.
    ///
    /// The last column of a row is the number of the set that found it, beginning with 1. Making
    /// the text takes longer than running a short query.
    var statement: String {
        let arrays = columns.enumerated().map { "$\($0 + 1)::\($1.typeName)" }
        let names = columns.indices.map { "value\($0 + 1)" }
        // The query is planned by itself, as if its values were parameters. An OFFSET causes that,
        // and a query may have only one.
        let fence = sql.contains("OFFSET") ? "" : " OFFSET 0"
        return """
            SELECT found.*, asked.number
            FROM unnest(\(arrays.joined(separator: ", ")))
                WITH ORDINALITY AS asked (\(names.joined(separator: ", ")), number)
            CROSS JOIN LATERAL (\(Self.named(sql, columns))\(fence)) AS found
            """
    }

    /// Returns the query with names of columns instead of parameters.
    ///
    /// All texts of the relay are compared byte by byte.
    private static func named(_ sql: String, _ columns: [PostgresArray]) -> String {
        var parts = sql.split(separator: "'", omittingEmptySubsequences: false).map(String.init)
        // Every other part is quoted; a doubled quote only ends one and begins the next.
        for index in stride(from: 0, to: parts.count, by: 2) {
            parts[index].replace(#/\$(?<number>[0-9]+)/#) { match in
                let name = "asked.value\(match.number)"
                guard let number = Int(match.number), columns.indices.contains(number - 1) else {
                    preconditionFailure("a parameter of the query has no value")
                }
                return columns[number - 1].kind == .text ? "(\(name) COLLATE \"C\")" : name
            }
        }
        return parts.joined(separator: "'")
    }
}
