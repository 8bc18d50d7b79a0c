/// Up to where the rows of a table, which are numbered in the order of time, have outlived a bound
/// on their size.
struct SizeCutoff {
    let db: Database
    let table: String
    /// The column with the number of a row.
    let number: String
    /// What a row has besides its body.
    let rowBytes: Int

    /// Rows that are looked at to know about how large all are, and whether that is right.
    private static let samples = (few: 512, many: 8192)
    /// Rows that one statement looks at.
    private static let batch = 64

    /// The last row beyond the newest of `bytes` altogether, about; `nil` if there is none.
    ///
    /// Rows all over the table stand for those around them: of the newest alone, a few hundred
    /// large ones would push out what there is room for. Before anything goes, many are looked at:
    /// of few, in a log of ten millions, one that is large stands for more than the log may have,
    /// and each minute others are looked at.
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

    /// The bytes of the bodies of these rows, as many as a batch has.
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

    /// The first and the last row; `nil` if there is none.
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
