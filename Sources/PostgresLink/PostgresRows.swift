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
    /// A result of libpq, which several answers may share.
    private final class Shared {
        let handle: OpaquePointer

        init(_ handle: OpaquePointer) {
            self.handle = handle
        }

        deinit {
            PQclear(handle)
        }
    }

    private let shared: Shared
    /// The rows of the result that belong to the answer.
    private let places: [Int32]
    private let types: [UInt32]

    /// Takes ownership of a result of libpq.
    convenience init(_ result: OpaquePointer) {
        let columns = PQnfields(result)
        self.init(
            Shared(result), places: Array(0..<PQntuples(result)),
            types: (0..<columns).map { PQftype(result, $0) })
    }

    private init(_ shared: Shared, places: [Int32], types: [UInt32]) {
        self.shared = shared
        self.places = places
        self.types = types
    }

    /// Splits the answer to a ``RepeatedQuery`` into the answers for each of `count` sets, without
    /// the column that numbers them.
    func split(into count: Int) -> [PostgresRows] {
        var found = [[Int32]](repeating: [], count: count)
        let last = types.count - 1
        for row in 0..<self.count {
            guard case .integer(let number) = self[row, last] else { continue }
            found[Int(number) - 1].append(place(row))
        }
        return found.map { PostgresRows(shared, places: $0, types: Array(types.dropLast())) }
    }

    /// The number of rows.
    package var count: Int { places.count }

    private var result: OpaquePointer { shared.handle }

    private func place(_ row: Int) -> Int32 { places[row] }

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
        PQgetisnull(result, place(row), Int32(column)) != 0
    }

    /// Returns the size of a value in the server's format, in bytes.
    package func byteCount(_ row: Int, _ column: Int) -> Int {
        Int(PQgetlength(result, place(row), Int32(column)))
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
                start: PQgetvalue(result, place(row), Int32(column)),
                count: byteCount(row, column)),
            type: types[column])
    }
}
