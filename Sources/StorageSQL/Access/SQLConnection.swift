package import FoundationEssentials
import Synchronization

/// A connection that an engine gives to the shared steps, within one transaction.
///
/// One thread at a time uses it, and no code keeps it beyond the closure that received it.
/// Statements use SQL that both engines understand; where they differ, a ``Dialect`` provides the
/// text. Parameters are `?` or `?1`, `?2`, …, never mixed in one statement. An engine with another
/// notation translates them, except in quoted texts.
///
/// An engine may defer a statement whose result is not requested, and send it with the next
/// statement whose result is, or at the end of the transaction. So a failure may be thrown later
/// than it arose, but never after the commit.
package protocol SQLConnection: AnyObject {
    /// The engine's dialect.
    var dialect: Dialect { get }

    /// Whether a transaction is open.
    ///
    /// An engine that rolls the whole transaction back after certain failures reports it here.
    var isInsideTransaction: Bool { get }

    /// Prepares a single statement.
    ///
    /// With `keeping`, the same text is prepared only once. Such a statement must not be run again
    /// while its rows are being read.
    func prepare(_ sql: String, keeping: Bool) throws -> any SQLStatement

    /// Runs all deferred statements and throws their failures.
    ///
    /// It is called before a savepoint is released, so that a failure is attributed to the request
    /// that caused it.
    func settle() throws
}

/// A prepared statement.
///
/// Each call passes as many arguments as the statement has parameters.
package protocol SQLStatement: AnyObject {
    /// Runs the statement.
    ///
    /// The engine may defer it until the next statement whose result is requested.
    func execute(_ arguments: [SQLValue]) throws

    /// Runs an INSERT statement whose parameters are the values of one row, all in `VALUES (?, …)`.
    ///
    /// The engine may insert the row together with rows of later calls, before the next other
    /// statement. Rows that different statements insert may then come in another order.
    ///
    /// `keyColumns` tells how many of the first values distinguish rows if the statement has ON
    /// CONFLICT; otherwise it is 0.
    func insert(_ row: [SQLValue], keyColumns: Int) throws

    /// Runs the statement now, after all deferred ones, and returns the number of inserted, changed
    /// or deleted rows.
    func executeCounting(_ arguments: [SQLValue]) throws -> Int

    /// Runs the statement now, after all deferred ones, and returns the rows that it finds or
    /// returns (`RETURNING`).
    ///
    /// All its writes are done, even if the rows are not read to the end.
    func query(_ arguments: [SQLValue]) throws -> any SQLRows

    /// Runs the statement now, after all deferred ones, with each of several sets of arguments in
    /// order, and passes the rows of each to `take` with the number of the set.
    ///
    /// The rows are valid until the next call of `take`. An engine with round trips sends many sets
    /// at a time.
    func queryEach(
        _ arguments: [[SQLValue]], _ take: (_ number: Int, _ rows: any SQLRows) throws -> Void
    ) throws

    /// Runs the statement now, after all deferred ones, for a caller that may stop long before the
    /// last row.
    ///
    /// Within a transaction, only some rows beyond those already read are computed and in memory.
    ///
    /// The statement must only read, and its rows are valid until the transaction ends.
    func walk(_ arguments: [SQLValue]) throws -> any SQLRows
}

extension SQLStatement {
    /// Inserts the row alone.
    ///
    /// This suffices for an engine for which a statement costs little.
    package func insert(_ row: [SQLValue], keyColumns: Int) throws { try execute(row) }

    /// Runs the query once for each set.
    ///
    /// This suffices for an engine without round trips.
    package func queryEach(
        _ arguments: [[SQLValue]], _ take: (_ number: Int, _ rows: any SQLRows) throws -> Void
    ) throws {
        for (number, values) in arguments.enumerated() { try take(number, try query(values)) }
    }

    /// Runs a plain query.
    ///
    /// This suffices for an engine that computes rows one by one.
    package func walk(_ arguments: [SQLValue]) throws -> any SQLRows { try query(arguments) }
}

/// The columns of one row.
///
/// Columns are counted from 0. Reading converts between kinds: `integer` and `real` read numbers of
/// every type, sums, and truth values (`EXISTS …`).
package protocol SQLColumns: AnyObject {
    /// The names of the columns.
    var names: ColumnNames { get }

    /// Returns whether a column is NULL.
    func isNull(at index: Int) -> Bool
    /// Reads an integer; true reads as 1.
    func integer(at index: Int) -> Int64
    /// Reads a floating-point number.
    func real(at index: Int) -> Double
    /// Reads a text.
    func text(at index: Int) -> String
    /// Reads a blob, or the bytes of a text.
    func bytes(at index: Int) -> Data
    /// Returns the size of a text or blob in bytes; 0 for NULL.
    func size(at index: Int) -> Int
    /// Returns the value as it is stored.
    ///
    /// For NULL, the kind is arbitrary.
    func value(at index: Int) -> SQLValue

    /// Returns a copy of the row that stays valid after the cursor moves on.
    func copy() -> any SQLColumns
}

/// The rows of a result.
///
/// The columns are those of the current row.
package protocol SQLRows: SQLColumns {
    /// Advances to the next row, or to the first, and returns whether there is one.
    func next() throws -> Bool
}

/// A failure of the engine, as opposed to a refusal or finding of Belfry itself.
package protocol SQLFailure: Error {}

/// The names of a result's columns.
package final class ColumnNames: Sendable {
    /// The names, in order.
    package let names: [String]
    /// The indexes of names that the engine spells differently, cached; there are only as many as
    /// the statements use.
    private let others = Mutex<[String: Int?]>([:])

    package init(_ names: [String]) {
        self.names = names
    }

    /// Returns the index of the first column with a name, ignoring case, because PostgreSQL folds
    /// names to lower case.
    package func index(of name: String) -> Int? {
        // This runs for each value of each row, so the common case of an equal spelling comes
        // first.
        if let index = names.firstIndex(of: name) { return index }
        return others.withLock { others in
            if let known = others[name] { return known }
            let index = names.firstIndex { Self.isSame($0, name) }
            others[name] = .some(index)
            return index
        }
    }

    /// Returns the index of the last column with a name.
    ///
    /// Joined columns come after a table's own.
    package func lastIndex(of name: String) -> Int? {
        names.lastIndex { Self.isSame($0, name) }
    }

    private static func isSame(_ one: String, _ other: String) -> Bool {
        one.utf8.count == other.utf8.count
            && zip(one.utf8, other.utf8).allSatisfy { $0 == $1 || isSameLetter($0, $1) }
    }

    private static func isSameLetter(_ one: UInt8, _ other: UInt8) -> Bool {
        one ^ other == 0x20 && (0x61...0x7A).contains(one | 0x20)
    }
}

/// A row that was copied out of a result.
final class CopiedColumns: SQLColumns {
    let names: ColumnNames
    private let values: [SQLValue]

    init(of row: any SQLColumns) {
        names = row.names
        values = row.names.names.indices.map(row.value(at:))
    }

    func isNull(at index: Int) -> Bool {
        if case .null = values[index] { true } else { false }
    }

    func integer(at index: Int) -> Int64 {
        switch values[index] {
        case .integer(let number): number
        case .real(let number): Int64(exactly: number.rounded(.towardZero)) ?? 0
        case .text(let text): Int64(text) ?? 0
        case .bytes, .null: 0
        }
    }

    func real(at index: Int) -> Double {
        switch values[index] {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .text(let text): Double(text) ?? 0
        case .bytes, .null: 0
        }
    }

    func text(at index: Int) -> String {
        switch values[index] {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .null: ""
        }
    }

    func bytes(at index: Int) -> Data {
        if case .bytes(let bytes) = values[index] { bytes } else { Data(text(at: index).utf8) }
    }

    func size(at index: Int) -> Int {
        switch values[index] {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .integer, .real: text(at: index).utf8.count
        case .null: 0
        }
    }

    func value(at index: Int) -> SQLValue { values[index] }

    func copy() -> any SQLColumns { self }
}

extension SQLColumns {
    /// Copies every column.
    package func copy() -> any SQLColumns { CopiedColumns(of: self) }
}
