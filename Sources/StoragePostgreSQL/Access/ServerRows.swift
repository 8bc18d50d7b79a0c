import FoundationEssentials
import PostgresLink
import StorageSQL

/// The rows of a server's answer, one after the other; all rows of one answer are in memory.
final class ServerRows: SQLRows {
    let names: ColumnNames
    private var rows: PostgresRows
    private var current = -1
    /// The source of further rows, if these may not be all.
    private let cursor: ServerCursor?

    init(_ rows: PostgresRows, from cursor: ServerCursor? = nil) {
        self.rows = rows
        self.cursor = cursor
        names = ColumnNames(rows.names)
    }

    func next() throws -> Bool {
        current += 1
        if current >= rows.count, let cursor, !cursor.isDone {
            rows = try cursor.fetch()
            current = 0
        }
        return current < rows.count
    }

    func isNull(at index: Int) -> Bool { rows.isNull(current, index) }

    func integer(at index: Int) -> Int64 {
        switch rows[current, index] {
        case .integer(let number): number
        case .real(let number): Int64(exactly: number.rounded(.towardZero)) ?? 0
        case .text(let text): Int64(text) ?? 0
        case .bytes, .null: 0
        }
    }

    func real(at index: Int) -> Double {
        switch rows[current, index] {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .text(let text): Double(text) ?? 0
        case .bytes, .null: 0
        }
    }

    func text(at index: Int) -> String {
        switch rows[current, index] {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .null: ""
        }
    }

    func bytes(at index: Int) -> Data {
        if case .bytes(let bytes) = rows[current, index] { return bytes }
        return Data(text(at: index).utf8)
    }

    func size(at index: Int) -> Int {
        isNull(at: index) ? 0 : rows.byteCount(current, index)
    }

    func value(at index: Int) -> SQLValue {
        switch rows[current, index] {
        case .integer(let number): .integer(number)
        case .real(let number): .real(number)
        case .text(let text): .text(text)
        case .bytes(let bytes): .bytes(bytes)
        case .null: .null(.text)
        }
    }
}
