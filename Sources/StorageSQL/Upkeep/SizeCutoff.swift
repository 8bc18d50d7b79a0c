/// Finds the row up to which a table, whose rows are numbered in the order of time, exceeds a limit
/// on its size.
struct SizeCutoff {
    let db: Database
    let table: String
    /// The column with the row's number.
    let number: String
    /// The size of a row without its body.
    let rowBytes: Int

    /// The numbers of rows sampled to estimate the total size, and to confirm the estimate.
    private static let samples = (few: 512, many: 8192)
    /// The number of rows that one statement reads.
    private static let batch = 64

    /// Returns approximately the last row that is not among the newest `bytes` bytes, or `nil` if
    /// there is none.
    ///
    /// The samples are spread over the table, and each stands for the rows around it. If only the
    /// newest rows were sampled, a few hundred large ones would push out rows that there is room
    /// for. Before rows are deleted, a large sample confirms the result: in a small sample of a log
    /// with ten million entries, a single large row can stand for more than the whole limit, and
    /// each minute the sample is another one.
    func last(beyond bytes: Int) throws -> Int64? {
        guard let bounds = try bounds(),
            try last(beyond: bytes, in: bounds, Self.samples.few) != nil
        else { return nil }
        return try last(beyond: bytes, in: bounds, Self.samples.many)
    }

    private func last(
        beyond bytes: Int, in bounds: ClosedRange<Int64>, _ samples: Int
    ) throws -> Int64? {
        let stride = Int64(max(1, (bounds.count + samples - 1) / samples))
        var room = bytes
        var next = bounds.upperBound
        while next >= bounds.lowerBound {
            let numbers = (0..<Int64(Self.batch)).map { next - $0 * stride }
            let sizes = try bodies(at: numbers)
            for number in numbers where number >= bounds.lowerBound {
                let size = sizes[number, default: 0] + rowBytes
                let count = Int(min(stride, number - bounds.lowerBound + 1))
                guard size * count <= room else {
                    let cutoff = number - Int64(max(0, room) / size)
                    return cutoff < bounds.lowerBound ? nil : cutoff
                }
                room -= size * count
            }
            next -= Int64(Self.batch) * stride
        }
        return nil
    }

    /// Returns the sizes of the bodies of these rows, as many as a batch has.
    private func bodies(at numbers: [Int64]) throws -> [Int64: Int] {
        let marks = Array(repeating: "?", count: Self.batch).joined(separator: ", ")
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(number), \(db.dialect.bytes(of: "body")) FROM \(table)
                WHERE \(number) IN (\(marks))
                """)
        let rows = try Row.fetchAll(statement, arguments: StatementArguments(numbers))
        return Dictionary(
            rows.map { ($0[0] as Int64, $0[1] as Int) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns the numbers of the first and the last row, or `nil` if the table is empty.
    func bounds() throws -> ClosedRange<Int64>? {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT (SELECT min(\(number)) FROM \(table)),
                    (SELECT max(\(number)) FROM \(table))
                """)
        guard let first = row?[0] as Int64?, let last = row?[1] as Int64? else { return nil }
        return first...max(first, last)
    }
}
