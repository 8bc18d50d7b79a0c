package import FoundationEssentials
package import Storage

/// Moves a whole store from one place to another, on any combination of engines.
///
/// Both ends are marked as part of a move from the beginning, so that no relay starts on either.
/// Each portion of rows is committed together with the progress of the move. So an interrupted move
/// continues where it stopped when it is run again.
package struct StoreMove {
    private let source: any MoveEnd
    private let target: any MoveEnd
    private let limits: PortionLimits
    private let tell: (MoveProgress) throws -> Void

    /// Prepares a move without reading or writing anything yet.
    ///
    /// - Parameters:
    ///   - source: The store to move.
    ///   - target: The place to move it to.
    ///   - limits: The limits of a portion in memory.
    ///   - tell: Called after each commit and each step. An error that it throws ends the move,
    ///     which may be run again.
    package init(
        from source: any MoveEnd, to target: any MoveEnd, limits: PortionLimits = PortionLimits(),
        tell: @escaping (MoveProgress) throws -> Void
    ) {
        self.source = source
        self.target = target
        self.limits = limits
        self.tell = tell
    }

    /// Moves everything, compares both ends, checks the new store, and lets relays open it.
    ///
    /// The time is that of reading the source twice, and of writing and reading the target once. At
    /// most one portion of rows is in memory.
    ///
    /// - Throws: ``StorageError`` if the target is not empty, either store is part of another move
    ///   or has another schema, or the ends differ; errors of the engines. In these cases the
    ///   source has lost nothing.
    package func run() throws -> MoveReport {
        let tables = try TableLayout.agreed(source, target)
        let mark = try begin(tables)
        try copy(tables, from: mark)
        let numbers = TableNumbers(source: source, target: target)
        try numbers.copy()
        let sums = try compare(tables)
        try numbers.compare()
        let problems = try check(mark)
        try target.write { db in
            try db.execute(sql: "DELETE FROM storeMove")
            try target.letIn(db)
        }
        return MoveReport(tables: sums, problems: problems)
    }

    /// Makes a moved store usable again, under a new identity, because the store at the other end
    /// has meanwhile used its positions.
    ///
    /// - Parameters:
    ///   - source: The store that was moved away.
    ///   - identity: 16 random bytes.
    /// - Throws: ``StorageError`` if the store was not moved away.
    package static func takeBack(_ source: any MoveEnd, identity: Data) throws {
        guard let mark = try source.read(MoveMark.find), mark.direction == .away else {
            throw StorageError.inaccessible(path: source.place, reason: "it was not moved away")
        }
        try source.releaseIdentity()
        try source.write { db in
            try makeAnother(source, identity, db)
            try db.execute(sql: "DELETE FROM storeMove")
            try source.letIn(db)
        }
    }

    /// Gives a new identity to a store that was restored by a server's own means, because the
    /// original may have used the positions at which this log continues.
    ///
    /// Deliveries that wait keep their identities.
    ///
    /// - Parameters:
    ///   - end: The store.
    ///   - identity: 16 random bytes.
    /// - Returns: The report of a check, which found no problems.
    /// - Throws: ``StorageError`` if the store is part of a move or has problems. Then nothing was
    ///   changed.
    package static func renew(_ end: any MoveEnd, identity: Data) throws -> StoreReport {
        if let mark = try end.read(MoveMark.find) { throw mark.refusal(at: end.place) }
        let report = try end.check()
        guard report.problems.isEmpty else {
            throw StorageError.damaged(
                path: end.place,
                reason: "it is not sound: \(report.problems.joined(separator: "; "))")
        }
        try end.releaseIdentity()
        try end.write { db in try makeAnother(end, identity, db) }
        return report
    }

    /// Changes the identity, deletes the record of the snapshot, which belongs to the old identity,
    /// and raises the epoch, so that an older process can no longer settle.
    private static func makeAnother(_ end: any MoveEnd, _ identity: Data, _ db: Database) throws {
        try end.setIdentity(identity, db)
        try db.execute(sql: "DELETE FROM stateSnapshot")
        try db.execute(sql: "UPDATE progress SET epoch = epoch + 1")
    }

    // MARK: Steps

    /// Marks both ends and returns the progress of an earlier attempt.
    private func begin(_ tables: [TableLayout]) throws -> MoveMark {
        let identity = try source.read(Self.identity)
        let left = try source.read(MoveMark.find)
        if let left, left.direction == .here { throw left.refusal(at: source.place) }
        let found = try target.read(MoveMark.find)
        if let found {
            try resume(found, identity, left)
        } else {
            if let left { throw left.refusal(at: source.place) }
            try target.read { try refuseRows($0, tables) }
        }
        let mark = found ?? MoveMark(.here, identity, place: source.place)
        if found == nil {
            try target.releaseIdentity()
            try target.write { try open(mark, $0) }
        }
        try tell(MoveProgress(.copying, table: mark.table, rows: mark.rows))
        if left == nil {
            try source.write { db in
                try source.lockOut(db)
                try MoveMark(.away, identity, place: target.place).write(db)
            }
        }
        try tell(MoveProgress(.copying, table: mark.table, rows: mark.rows))
        return mark
    }

    private static func identity(_ db: Database) throws -> Data {
        guard let identity = try Data.fetchOne(db, sql: "SELECT identity FROM store") else {
            throw StorageError.damaged(path: "store", reason: "the store has no identity")
        }
        return identity
    }

    /// Checks that the move that was begun at the target is this one.
    private func resume(_ found: MoveMark, _ identity: Data, _ left: MoveMark?) throws {
        guard found.direction == .here else { throw found.refusal(at: target.place) }
        // A source that was taken back or replaced is another store by now.
        guard found.identity == identity, left != nil || found.table.isEmpty else {
            throw StorageError.inaccessible(
                path: target.place,
                reason: "it contains a part of the store that was at \(found.place), where there "
                    + "is another store now: remove it, or name another place")
        }
        // If the earlier attempt stopped before the source was marked, the source may have been
        // moved elsewhere since.
        if let left, found.table.isEmpty, left.place != target.place {
            throw left.refusal(at: source.place)
        }
    }

    private func refuseRows(_ db: Database, _ tables: [TableLayout]) throws {
        let filled = try tables.filter { table in
            try !MovedTables.seeded.contains(table.name)
                && Row.fetchOne(db, sql: "SELECT 1 FROM \"\(table.name)\" LIMIT 1") != nil
        }
        guard filled.isEmpty, try MoveHead.find(db) == 0 else {
            let names = filled.map(\.name).joined(separator: ", ")
            throw StorageError.inaccessible(
                path: target.place,
                reason: "it already contains a store (\(names)): a move needs an empty place, or "
                    + "the place where the same move was begun")
        }
    }

    private func open(_ mark: MoveMark, _ db: Database) throws {
        try target.lockOut(db)
        for table in MovedTables.seeded { try db.execute(sql: "DELETE FROM \(table)") }
        try target.setIdentity(mark.identity, db)
        try mark.write(db)
    }

    private func copy(_ tables: [TableLayout], from begun: MoveMark) throws {
        var mark = begun
        let first = tables.firstIndex { $0.name == mark.table } ?? 0
        for table in tables[first...] {
            if table.name != mark.table {
                mark.table = table.name
                mark.lastKey = nil
                mark.rows = 0
            }
            var isLast = false
            while !isLast {
                let portion = try source.read { db in
                    try TablePortion(of: table, after: mark.lastKey, limits, in: db)
                }
                isLast = portion.isLast
                guard let key = portion.lastKey else { break }
                mark.lastKey = key
                mark.rows += Int64(portion.rows.count)
                try target.write { db in
                    try portion.insert(into: table, db)
                    try mark.write(db)
                }
                try tell(MoveProgress(.copying, table: table.name, rows: mark.rows))
            }
        }
    }

    private func compare(_ tables: [TableLayout]) throws -> [MoveReport.Table] {
        try tables.map { table in
            try tell(MoveProgress(.comparing, table: table.name, rows: 0))
            let (from, to) = (
                try TableSum(of: table, limits, in: source),
                try TableSum(of: table, limits, in: target)
            )
            guard from == to else {
                throw StorageError.damaged(
                    path: target.place,
                    reason: "\(table.name) has \(to.rows) rows (sum \(to.text)), but at "
                        + "\(source.place) \(from.rows) (sum \(from.text)): run belfry move "
                        + "--take-back, remove the target, and move again")
            }
            return MoveReport.Table(name: table.name, sum: to)
        }
    }

    /// Returns the problems that a check finds at both ends.
    ///
    /// Problems of the target alone are an error.
    private func check(_ mark: MoveMark) throws -> [String] {
        try tell(MoveProgress(.checking, table: "", rows: 0))
        // All rows have been copied at this point.
        let found = try target.check().problems.filter { $0 != mark.incompleteness }
        guard !found.isEmpty else { return [] }
        let before = Set(try source.check().problems)
        let new = found.filter { !before.contains($0) }
        guard new.isEmpty else {
            throw StorageError.damaged(
                path: target.place, reason: "it is not sound: \(new.joined(separator: "; "))")
        }
        return found
    }
}

/// The progress of a move.
package struct MoveProgress: Sendable, Hashable {
    /// The current step.
    package enum Step: String, Sendable {
        case copying, comparing, checking
    }

    package let step: Step
    /// The table, in lower case; empty if the step is not about one table.
    package let table: String
    /// The number of its rows that are written.
    package let rows: Int64

    init(_ step: Step, table: String, rows: Int64) {
        self.step = step
        self.table = table
        self.rows = rows
    }
}

/// The result of a move.
package struct MoveReport: Sendable, Hashable {
    /// A table, which is equal at both ends.
    package struct Table: Sendable, Hashable {
        package let name: String
        package let sum: TableSum
    }

    package let tables: [Table]
    /// The problems that a check finds at both ends.
    package let problems: [String]
}
