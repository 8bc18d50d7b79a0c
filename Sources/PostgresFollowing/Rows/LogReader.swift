package import ChangeSources
import RelayModel

/// The place of a row in the log: the commit of its transaction, and the index of the change in it.
package struct RowPlace: Sendable, Hashable, Comparable {
    package let commit: PostgresPosition
    package let index: Int

    package init(commit: PostgresPosition, index: Int) {
        self.commit = commit
        self.index = index
    }

    package static func < (left: Self, right: Self) -> Bool {
        (left.commit, left.index) < (right.commit, right.index)
    }
}

/// The result of a message of the log.
package enum LogStep: Sendable, Hashable {
    /// A table's shape must be learned (``LogReader/learn(_:)``) before its rows can be decoded.
    case unknownTable(Relation)
    case row(FollowedRow, RowPlace)
    /// A transaction is complete; the log was read up to `end`.
    case committed(commit: PostgresPosition, end: PostgresPosition)
}

/// Turns the log's messages, one after the other, into changes of rows.
///
/// It is a value without a connection, so the same messages give the same changes again.
package struct LogReader: Sendable {
    private struct Transaction {
        let commit: PostgresPosition
        let version: Int64
        let at: Timestamp
        /// The prefix of its rows' positions, which is the same for all of them.
        let origin: String
        var rows = 0
        var author: ChangeAuthor?
    }

    private let timelines: Timelines
    private let database: String
    private var tables: [UInt32: TableShape] = [:]
    private var transaction: Transaction?
    /// The names that rows have taken within the transaction.
    private var arrivals = RowArrivals()
    /// The number of values that were left out, because their row is too large or they have endless
    /// combining marks.
    package private(set) var valuesLeftOut: UInt64 = 0
    /// The number of transactions whose declaration of an author names neither a device nor a user.
    package private(set) var authorsUnread: UInt64 = 0

    /// The prefix of messages that declare the author of the changes after them.
    package static let notePrefix = "belfry"

    package init(timelines: Timelines, database: String) {
        self.timelines = timelines
        self.database = database
    }

    /// Whether a transaction has begun and is not complete.
    package var isWithinTransaction: Bool { transaction != nil }

    /// The author of the current transaction's changes, if it has declared one so far.
    var author: ChangeAuthor? { transaction?.author }

    /// Stores the shape of a table.
    package mutating func learn(_ shape: TableShape) {
        tables[shape.relation.id] = shape
    }

    /// Returns a table's key when it was last learned, in the key's order.
    ///
    /// It is empty if the log now marks other columns, unless it marks all of them.
    package func formerKey(of relation: Relation) -> [String] {
        let former = tables[relation.id]?.key ?? []
        let marked = Set(relation.columns.filter(\.isIdentity).map(\.name))
        let isWhole = relation.identity == UInt8(ascii: "f")
        return isWhole ? former.filter(marked.contains) : Set(former) == marked ? former : []
    }

    /// Takes the next message.
    ///
    /// - Throws: ``MalformedMessage`` if it cannot follow those before it.
    package mutating func take(_ message: LogMessage) throws(MalformedMessage) -> [LogStep] {
        switch message {
        case .begin(let commit, let microseconds, _):
            let prefix = timelines.prefix(at: commit)
            // A server that was restored from a backup reuses positions and transaction numbers,
            // but at another time.
            let moment = String(microseconds, radix: 36)
            arrivals = RowArrivals()
            transaction = Transaction(
                commit: commit, version: timelines.version(of: commit),
                at: Self.moment(microseconds), origin: "\(prefix)/\(commit)/\(moment)/")
        case .commit(let end):
            guard let ended = transaction else {
                throw MalformedMessage("ends a transaction that has not begun")
            }
            transaction = nil
            return [.committed(commit: ended.commit, end: end)]
        case .relation(let relation):
            return [.unknownTable(relation)]
        case .insert(let id, let row):
            return [try change(.create, id, before: nil, after: row)]
        case .update(let id, let before, let row):
            return [try change(.update, id, before: before, after: row)]
        case .delete(let id, let before):
            return [try change(.delete, id, before: before, after: nil)]
        case .truncate(let ids):
            var steps: [LogStep] = []
            for id in ids { steps.append(try change(.truncate, id, before: nil, after: nil)) }
            return steps
        case .note(let prefix, let content, let isTransactional):
            if isTransactional, prefix == Self.notePrefix {
                // An invalid declaration names no author.
                transaction?.author = ChangeAuthor(Array(content))
                if transaction?.author == nil { authorsUnread += 1 }
            }
        case .other: break
        }
        return []
    }

    /// Converts PostgreSQL's time, in microseconds since 2000.
    private static func moment(_ microseconds: Int64) -> Timestamp {
        let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let isBelow = rest < 0
        return Timestamp(
            seconds: seconds + 946_684_800 - (isBelow ? 1 : 0),
            nanoseconds: Int32((isBelow ? rest + 1_000_000 : rest) * 1000))
    }

    private mutating func change(
        _ operation: FollowedRow.Operation, _ id: UInt32, before: FormerRow?,
        after: [ColumnValue]?
    ) throws(MalformedMessage) -> LogStep {
        guard var current = transaction else {
            throw MalformedMessage("changes a row outside of a transaction")
        }
        guard let shape = tables[id] else {
            throw MalformedMessage("refers to an unknown table (\(id))")
        }
        let place = RowPlace(commit: current.commit, index: current.rows)
        current.rows += 1
        transaction = current
        var row = FollowedRow(
            operation, schema: shape.relation.schema, table: shape.relation.name, key: shape.key,
            position: current.origin + String(place.index))
        row.database = database
        row.deviceID = current.author?.deviceID
        row.userID = current.author?.userID
        row.occurredAt = current.at
        row.version = current.version
        var images = RowBuilder(shape)
        let before = shape.former(before)
        row.before = try images.former(before)
        row.after = try after.map { values throws(MalformedMessage) in
            try images.row(values, unchanged: before)
        }
        valuesLeftOut += images.leftOut
        if shape.isKeyDeferrable { arrivals.note(&row, of: shape.relation) }
        return .row(row, place)
    }
}
