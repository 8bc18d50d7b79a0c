import Crypto
import FoundationEssentials
import RelayModel

/// The number of rows in a table and a checksum over all their values.
///
/// Equal tables have equal sums on every engine.
package struct TableSum: Sendable, Hashable {
    /// The number of rows.
    package private(set) var rows: Int64 = 0
    /// The sum of the rows' SHA-256 hashes as four numbers with wraparound, which does not depend
    /// on the order of the rows.
    private var words: [UInt64] = [0, 0, 0, 0]

    /// The sum in hexadecimal digits.
    package var text: String {
        words.map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Reads a whole table, one portion at a time.
    init(of table: TableLayout, _ limits: PortionLimits, in end: any MoveEnd) throws {
        let compared = table.columns.indices.filter {
            !MovedTables.uncompared.contains("\(table.name).\(table.columns[$0].name)")
        }
        var last: [SQLValue]?
        while true {
            let portion = try end.read { db in
                try TablePortion(of: table, after: last, limits, in: db)
            }
            for row in portion.rows { add(compared.map { row[$0] }) }
            last = portion.lastKey ?? last
            if portion.isLast { return }
        }
    }

    private mutating func add(_ row: [SQLValue]) {
        var hash = SHA256()
        for value in row { Self.add(value, to: &hash) }
        let bytes = Array(hash.finalize())
        for index in words.indices {
            words[index] &+= bytes[index * 8..<index * 8 + 8]
                .reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        rows += 1
    }

    private static func add(_ value: SQLValue, to hash: inout SHA256) {
        switch value {
        case .null: hash.update(data: [0] as [UInt8])
        case .integer(let number): hash.update(data: Array("i\(number);".utf8))
        case .real(let number): hash.update(data: Array("r\(number.bitPattern);".utf8))
        case .text(let text):
            // PostgreSQL stores U+FFFD in place of U+0000.
            let kept = text.utf8.contains(0) ? text.replacing("\0", by: "\u{FFFD}") : text
            hash.update(data: Array("t\(kept.utf8.count):\(kept)".utf8))
        case .bytes(let bytes):
            hash.update(data: Array("b\(bytes.count):".utf8))
            hash.update(data: bytes)
        }
    }
}
