#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// The answer to a statement: rows, and how many rows it changed.
///
/// Concurrency: it never changes, so any thread may read it. It takes as much memory as the
/// server's answer.
package final class PostgresRows: @unchecked Sendable {
    private let result: OpaquePointer
    /// The number of rows.
    package let count: Int
    private let types: [UInt32]

    /// Takes ownership of a result of libpq.
    init(_ result: OpaquePointer) {
        self.result = result
        count = Int(PQntuples(result))
        let columns = PQnfields(result)
        types = (0..<columns).map { PQftype(result, $0) }
    }

    deinit {
        PQclear(result)
    }

    /// The number of rows that the statement changed; for a query, the number of rows that it
    /// found.
    package var changed: Int {
        PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    }

    /// The number of columns.
    package var columns: Int { types.count }

    /// The names of the columns as the server has them: in lower case unless quoted.
    package var names: [String] {
        (0..<Int32(types.count)).map { column in
            PQfname(result, column).map { String(cString: $0) } ?? ""
        }
    }

    /// The server's command tag, such as `COMMIT`; it is `ROLLBACK` if a commit of a failed
    /// transaction was requested.
    package var tag: String { String(cString: PQcmdStatus(result)) }

    /// Returns whether a value is NULL.
    package func isNull(_ row: Int, _ column: Int) -> Bool {
        PQgetisnull(result, Int32(row), Int32(column)) != 0
    }

    /// Returns the size of a value in the server's format, in bytes.
    package func byteCount(_ row: Int, _ column: Int) -> Int {
        Int(PQgetlength(result, Int32(row), Int32(column)))
    }

    /// The size of all values, in bytes.
    package var bytes: Int {
        var bytes = 0
        for row in 0..<count {
            for column in types.indices { bytes += byteCount(row, column) }
        }
        return bytes
    }

    /// Returns the value in a row and a column.
    package subscript(row: Int, column: Int) -> PostgresValue {
        precondition(row >= 0 && row < count && column >= 0 && column < types.count)
        if isNull(row, column) { return .null(.text) }
        return PostgresValue(
            UnsafeRawBufferPointer(
                start: PQgetvalue(result, Int32(row), Int32(column)),
                count: byteCount(row, column)),
            type: types[column])
    }
}
