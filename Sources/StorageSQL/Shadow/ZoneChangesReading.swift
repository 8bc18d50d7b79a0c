import RelayModel
import Storage

/// Reads the changes in several zones of one database in one transaction.
struct ZoneChangesReading {
    let rows: ShadowRows
    let questions: [ZoneChangesQuestion]
    let db: Database

    /// The number of zones read together, and the limits on the answer of each of them.
    ///
    /// Together they have no more than one record may have.
    private static let together = (zones: 16, rows: 16, bytes: 64 << 10)

    /// Returns the zones and their pages, which together have about `bytes` bytes of stored text.
    ///
    /// Pages for which no room is left are empty and have more.
    func run(within bytes: Int) throws -> [ZoneChanges] {
        let marks = try rows.marks(of: questions.map(\.zoneID), in: db)
        // On PostgreSQL, zones with few changes are read in one batch.
        let small = try db.dialect == .postgresql ? smallOnes() : []
        var known: [Int: [Row]] = [:]
        var room = bytes
        return try marks.enumerated().map { index, mark in
            var page = Page<ShadowRecord>([], hasMore: true)
            if room >= Self.together.bytes, small.contains(index) {
                if known[index] == nil { known = try next(from: index, of: small) }
                page = try Self.page(of: known.removeValue(forKey: index) ?? [])
            } else if room > 0 {
                page = try walk(questions[index], bytes: room)
            }
            room -= page.bytes
            return ZoneChanges(zone: mark, page: page)
        }
    }

    /// Reads a page row by row, so that nothing beyond it is in memory.
    private func walk(
        _ question: ZoneChangesQuestion, bytes: Int
    ) throws -> Page<ShadowRecord> {
        let found = try Row.fetchCursor(db, sql: Self.changed, arguments: arguments(question))
        return try PageBounds(rows: question.rows, bytes: bytes).page(of: found) {
            (try ShadowRecord(row: $0), $0.bytes(of: "fields", "wire"))
        }
    }

    // MARK: Together

    /// Returns the indexes of the questions whose whole answer is small.
    private func smallOnes() throws -> Set<Int> {
        let sizes = try Row.fetchAlls(
            try db.cachedStatement(sql: Self.sizes(db.dialect)),
            arguments: questions.map { arguments($0) })
        var small: Set<Int> = []
        for (index, found) in sizes.enumerated() {
            let bytes = found.reduce(0) { $0 + ($1[0] as Int) }
            let most = min(Self.together.rows, questions[index].rows)
            if found.count <= most, bytes <= Self.together.bytes { small.insert(index) }
        }
        return small
    }

    /// Returns the rows of the next small answers, beginning with that at `index`.
    private func next(from index: Int, of small: Set<Int>) throws -> [Int: [Row]] {
        let rest = (index..<questions.count).lazy.filter { small.contains($0) }
        let asked = Array(rest.prefix(Self.together.zones))
        let found = try Row.fetchAlls(
            try db.cachedStatement(sql: Self.changed),
            arguments: asked.map { arguments(questions[$0]) })
        return Dictionary(zip(asked, found), uniquingKeysWith: { first, _ in first })
    }

    private static func page(of rows: [Row]) throws -> Page<ShadowRecord> {
        var page = Page(try rows.map(ShadowRecord.init(row:)), hasMore: false)
        page.bytes = rows.reduce(0) { $0 + $1.bytes(of: "fields", "wire") }
        return page
    }

    // MARK: Statements

    private func arguments(_ question: ZoneChangesQuestion) -> StatementArguments {
        rows.zone(question.zoneID) + [question.position.stored]
    }

    private static let condition = """
        \(ShadowRows.zoneCondition) AND isKept = 1 AND position > ?
            AND \(UnkeptTypes.isNone())
        """

    static let changed = """
        SELECT * FROM shadowRecord WHERE \(condition) ORDER BY position
        """

    /// Returns the statement for the sizes of the first records, including one more than are read
    /// together.
    static func sizes(_ dialect: Dialect) -> String {
        """
        SELECT coalesce(\(dialect.bytes(of: "fields")), 0)
            + coalesce(\(dialect.bytes(of: "wire")), 0) AS bytes
        FROM shadowRecord WHERE \(condition) ORDER BY position LIMIT \(together.rows + 1)
        """
    }
}
