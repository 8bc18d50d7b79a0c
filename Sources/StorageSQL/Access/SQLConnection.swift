package import FoundationEssentials
import Synchronization

/// What an engine gives the shared steps: a connection, within one transaction of it.
///
/// One thread uses it at a time, and nobody keeps it beyond the closure that it was handed to.
/// Statements are written as both engines understand them; where they do not, a ``Dialect`` says
/// how. Parameters are `?` or `?1`, `?2`, …, never mixed in one statement; an engine with another
/// notation translates them, outside of quoted texts.
///
/// An engine may keep an execution that nobody asks the result of, and send it with the next
/// statement that is asked for one, or at the end of the transaction: so that a failure may be
/// thrown later than where it arose, but never after the commit.
package protocol SQLConnection: AnyObject {
    /// How its engine says what engines say differently.
    var dialect: Dialect { get }

    /// Whether a transaction is open; an engine that undoes everything after certain failures says
    /// so here.
    var isInsideTransaction: Bool { get }

    /// Prepares a statement, one and not several.
    ///
    /// `keeping` it, the same text is prepared once; it must not be run again while its rows are
    /// read.
    func prepare(_ sql: String, keeping: Bool) throws -> any SQLStatement

    /// Has all run that was kept, and throws what failed of it: before a savepoint is given up, so
    /// that a failure is told to whom it belongs.
    func settle() throws
}

/// A statement that was prepared.
///
/// Each call has as many arguments as the statement has parameters.
package protocol SQLStatement: AnyObject {
    /// Runs it; the engine may do so later, with the next that is asked for a result.
    func execute(_ arguments: [SQLValue]) throws

    /// Runs it now, after all that was kept; returns how many rows it inserted, changed or deleted.
    func executeCounting(_ arguments: [SQLValue]) throws -> Int

    /// Runs it now, after all that was kept, and reads what it finds, or returns (`RETURNING`).
    ///
    /// Whatever it writes is written whole, also if the rows are not read to their end.
    func query(_ arguments: [SQLValue]) throws -> any SQLRows

    /// Runs it now, after all that was kept, with each of several sets of arguments, one after the
    /// other, and hands over what each finds, or returns, with its number.
    ///
    /// The rows are good until the next are handed over; an engine that waits for each answer asks
    /// for many at a time.
    func queryEach(
        _ arguments: [[SQLValue]], _ take: (_ number: Int, _ rows: any SQLRows) throws -> Void
    ) throws

    /// Runs it now, after all that was kept, for whoever may stop long before the last row: within
    /// a transaction no more is found and in memory than some rows beyond those that are read.
    ///
    /// It only reads, and its rows are good until the transaction ends.
    func walk(_ arguments: [SQLValue]) throws -> any SQLRows
}

extension SQLStatement {
    /// Where nobody waits for answers, nothing is different.
    package func queryEach(
        _ arguments: [[SQLValue]], _ take: (_ number: Int, _ rows: any SQLRows) throws -> Void
    ) throws {
        for (number, values) in arguments.enumerated() { try take(number, try query(values)) }
    }

    /// Where rows are found one by one anyway, nothing is different.
    package func walk(_ arguments: [SQLValue]) throws -> any SQLRows { try query(arguments) }
}

/// The columns of one row.
///
/// Columns are counted from 0. Reading converts where the kinds are others: numbers of every type,
/// sums and truths (`EXISTS …`) are read by `integer` and `real`.
package protocol SQLColumns: AnyObject {
    /// What the columns are called.
    var names: ColumnNames { get }

    /// Whether a column is NULL.
    func isNull(at index: Int) -> Bool
    /// A whole number; truth is 1.
    func integer(at index: Int) -> Int64
    /// A number.
    func real(at index: Int) -> Double
    /// A text.
    func text(at index: Int) -> String
    /// Bytes, or those of a text.
    func bytes(at index: Int) -> Data
    /// How many bytes the text or blob has; 0 for NULL.
    func size(at index: Int) -> Int
    /// The value as it is kept; of NULL the kind does not matter.
    func value(at index: Int) -> SQLValue

    /// The row as it is, for longer than until the next one.
    func copy() -> any SQLColumns
}

/// The rows of a result, one after the other: its columns are those of the current row.
package protocol SQLRows: SQLColumns {
    /// Goes on to the next row, or the first; says whether there is one.
    func next() throws -> Bool
}

/// A failure of an engine, as opposed to a refusal or a finding of Belfry's own.
package protocol SQLFailure: Error {}

/// What the columns of a result are called.
package final class ColumnNames: Sendable {
    /// The names, in order.
    package let names: [String]
    /// Where names stand that the engine spells otherwise: as many as statements ask for.
    private let others = Mutex<[String: Int?]>([:])

    package init(_ names: [String]) {
        self.names = names
    }

    /// The first column with a name, whatever the case of its letters: PostgreSQL has small ones
    /// only.
    package func index(of name: String) -> Int? {
        // Asked for each value of each row: most names are as they are spelt.
        if let index = names.firstIndex(of: name) { return index }
        return others.withLock { others in
            if let known = others[name] { return known }
            let index = names.firstIndex { Self.isSame($0, name) }
            others[name] = .some(index)
            return index
        }
    }

    /// The last column with a name: what was joined comes after a table's own.
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
