import FoundationEssentials
import RelayModel
import Storage

/// The writes of a settling step that concern ranges.
struct RangeSettling: Sendable {
    private let new: [(range: NewRange, serials: Data)]
    private let steps: [RangeStep]

    /// Encodes the ranges in advance, outside the writer's turn.
    init(_ step: SettledStep) {
        new = step.newRanges.map { ($0, Data(SerialList.encode($0.serials))) }
        steps = step.rangeSteps
    }

    func run(in db: Database) throws {
        if !new.isEmpty { try insert(in: db) }
        for step in steps { try advance(step, in: db) }
    }

    private func insert(in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO rangeTask (container, position, subscriptions, serials, "offset")
                VALUES (?, ?, ?, ?, 0)
                """)
        for (range, serials) in new {
            try statement.execute(arguments: [
                try db.container(range.container).id, range.position.stored, range.serials.count,
                serials,
            ])
        }
    }

    /// Advances a range with compare-and-set, which fails if another process has moved it.
    private func advance(_ step: RangeStep, in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: step.isFinished
                ? "DELETE FROM rangeTask WHERE id = ?2 AND \"offset\" = ?3 AND ?1 >= ?3"
                : "UPDATE rangeTask SET \"offset\" = ?1 WHERE id = ?2 AND \"offset\" = ?3")
        let count = try statement.executeCounting(
            arguments: [Int64(step.to), step.id.stored, Int64(step.from)])
        guard count == 1 else {
            throw StorageError.progressMoved(try ProgressMark(storedIn: db))
        }
    }
}
