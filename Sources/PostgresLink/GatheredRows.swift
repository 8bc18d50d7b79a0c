/// Rows that one INSERT statement inserts together.
///
/// A statement of its own for each row costs the server several times as much, because it prepares
/// the execution and reads the constraints of the table each time.
struct GatheredRows {
    /// The statement for a single row.
    let sql: String
    private var columns: [PostgresArray]
    /// The values of the distinguishing columns of each row.
    private var keys: Set<Key> = []
    /// The size of the values in bytes.
    private(set) var byteCount = 0

    /// Creates the set with its first row.
    init(_ sql: String, from row: [PostgresValue], keyColumns: Int) {
        self.sql = sql
        columns = row.map { PostgresArray(of: $0.kind) }
        _ = add(row, keyColumns: keyColumns)
    }

    /// The parameters of ``statement``.
    var parameters: PostgresParameters { PostgresParameters(columns) }

    /// Adds a row.
    ///
    /// Returns whether it was added. A row is not added if it has values of other kinds, or if a
    /// row with the same values in the first `keyColumns` columns is there: a statement with ON
    /// CONFLICT must not meet a row twice.
    mutating func add(_ row: [PostgresValue], keyColumns: Int) -> Bool {
        guard row.count == columns.count, zip(row, columns).allSatisfy({ $0.kind == $1.kind })
        else { return false }
        if keyColumns > 0 {
            guard keys.insert(Key(row.prefix(keyColumns))).inserted else { return false }
        }
        byteCount = 0
        for (index, value) in row.enumerated() {
            columns[index].append(value)
            byteCount += columns[index].byteCount
        }
        return true
    }

    /// Values as the server compares them.
    private struct Key: Hashable {
        private var bytes: [UInt8] = []

        init(_ values: some Sequence<PostgresValue>) {
            for value in values {
                // The size comes after the value, so that no two different keys are the same bytes.
                let start = bytes.count
                value.append(to: &bytes)
                PostgresValue.integer(Int64(bytes.count - start)).append(to: &bytes)
            }
        }

        /// Hashes the bytes at once; an array hashes each by itself.
        func hash(into hasher: inout Hasher) {
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    /// The statement for all rows, which takes an array for each column.
    var statement: String {
        let arrays = columns.enumerated().map { "$\($0 + 1)::\($1.typeName)" }
        let values = (1...columns.count).map { "$\($0)" }.joined(separator: ", ")
        let place = sql.ranges(of: "VALUES (\(values))")
        precondition(place.count == 1, "the statement does not insert one row of all parameters")
        return sql.replacing(
            "VALUES (\(values))", with: "SELECT * FROM unnest(\(arrays.joined(separator: ", ")))")
    }
}
