#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// What a statement answered: rows, and how many it changed.
///
/// It never changes, and so may be read anywhere; it is as large in memory as what the server sent.
package final class PostgresRows: @unchecked Sendable {
    private let result: OpaquePointer
    /// How many rows there are.
    package let count: Int
    private let types: [UInt32]

    /// Takes over what libpq made.
    init(_ result: OpaquePointer) {
        self.result = result
        count = Int(PQntuples(result))
        let columns = PQnfields(result)
        types = (0..<columns).map { PQftype(result, $0) }
    }

    deinit {
        PQclear(result)
    }

    /// How many rows the statement wrote or changed; of one that only read, how many it found.
    package var changed: Int {
        PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    }

    /// How many columns there are.
    package var columns: Int { types.count }

    /// The names of the columns, as the server says them: in small letters unless quoted.
    package var names: [String] {
        (0..<Int32(types.count)).map { column in
            PQfname(result, column).map { String(cString: $0) } ?? ""
        }
    }

    /// What the server says it did: `COMMIT`, and `ROLLBACK` where it was asked for the former.
    package var tag: String { String(cString: PQcmdStatus(result)) }

    /// Whether there is no value.
    package func isNull(_ row: Int, _ column: Int) -> Bool {
        PQgetisnull(result, Int32(row), Int32(column)) != 0
    }

    /// How many bytes a value takes in the server's form.
    package func byteCount(_ row: Int, _ column: Int) -> Int {
        Int(PQgetlength(result, Int32(row), Int32(column)))
    }

    /// How many bytes all values take.
    package var bytes: Int {
        var bytes = 0
        for row in 0..<count {
            for column in types.indices { bytes += byteCount(row, column) }
        }
        return bytes
    }

    /// The value in a row and a column.
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
