package import ChangeSources
import RelayModel

/// Where a row stands in the log: the transaction's commit, and the how-manieth change in it.
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

/// What a message of the log comes to.
package enum LogStep: Sendable, Hashable {
    /// A table's shape must be learned (``LogReader/learn(_:)``) before its rows can be read.
    case unknownTable(Relation)
    case row(FollowedRow, RowPlace)
    /// A transaction is complete; the log is read up to `end`.
    case committed(commit: PostgresPosition, end: PostgresPosition)
}

/// Reads the log's messages one after the other into changes of rows.
///
/// It is a value without a connection: what a follower got before, it gets again.
package struct LogReader: Sendable {
    private struct Transaction {
        let commit: PostgresPosition
        let version: Int64
        let at: Timestamp
        /// What the positions of its rows begin with: it is the same for all of them.
        let origin: String
        var rows = 0
        var author: ChangeAuthor?
    }

    private let timelines: Timelines
    private let database: String
    private var tables: [UInt32: TableShape] = [:]
    private var transaction: Transaction?
    /// Names that rows have come to within the transaction.
    private var arrivals = RowArrivals()
    /// Values that were left out because their row is too large.
    package private(set) var valuesLeftOut: UInt64 = 0
    /// Transactions that said who makes their changes in a way that names nobody.
    package private(set) var authorsUnread: UInt64 = 0

    /// The prefix of messages that name who makes the changes behind them.
    package static let notePrefix = "belfry"

    package init(timelines: Timelines, database: String) {
        self.timelines = timelines
        self.database = database
    }

    /// Whether a transaction has begun and is not complete.
    package var isWithinTransaction: Bool { transaction != nil }

    /// Who makes the changes of the transaction, as far as it has said so.
    var author: ChangeAuthor? { transaction?.author }

    /// Takes what is known of a table.
    package mutating func learn(_ shape: TableShape) {
        tables[shape.relation.id] = shape
    }

    /// What named the rows of a table when it was learned last, in the order of the key, where the
    /// log marks the same columns now, or all of them.
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
            // A server that was put back gives places and numbers of transactions anew, at another
            // time.
            let moment = String(microseconds, radix: 36)
            arrivals = RowArrivals()
            transaction = Transaction(
                commit: commit, version: timelines.version(of: commit),
                at: Self.moment(microseconds), origin: "\(prefix)/\(commit)/\(moment)/")
        case .commit(let end):
            guard let ended = transaction else { throw MalformedMessage("ends no transaction") }
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
                // What is none of that names nobody.
                transaction?.author = ChangeAuthor(Array(content))
                if transaction?.author == nil { authorsUnread += 1 }
            }
        case .other: break
        }
        return []
    }

    /// Microseconds since 2000, as PostgreSQL counts.
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
            throw MalformedMessage("names the unknown table \(id)")
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
