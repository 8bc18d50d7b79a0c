import Foundation
import GRDB
import RelayModel

extension LogPosition {
    /// As a column holds it: positions never reach 2^63.
    var stored: Int64 { Int64(clamping: rawValue) }

    init(stored: Int64) {
        self.init(UInt64(clamping: stored))
    }
}

extension Timestamp {
    /// Nanoseconds since 1970; saturates in the years 1677 and 2262.
    var stored: Int64 {
        let (product, overflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowedToo) = product.addingReportingOverflow(Int64(nanoseconds))
        return overflowed || overflowedToo ? (seconds < 0 ? .min : .max) : sum
    }

    init(stored: Int64) {
        let (quotient, remainder) = stored.quotientAndRemainder(dividingBy: 1_000_000_000)
        let isBelow = remainder < 0
        self.init(
            seconds: isBelow ? quotient - 1 : quotient,
            nanoseconds: Int32(isBelow ? remainder + 1_000_000_000 : remainder))
    }
}

extension UInt64 {
    /// As a column holds a serial, which never reaches 2^63.
    var stored: Int64 { Int64(clamping: self) }
}

extension DeliveryID {
    var stored: Data { Data(uuid.bytes) }

    init?(stored: Data) {
        guard let uuid = UUIDBytes(bytes: stored) else { return nil }
        self.init(uuid)
    }
}

extension DedupeKey.Kind {
    /// The number in the table `dedupe`.
    var stored: Int64 {
        switch self {
        case .position: 1
        case .delivery: 2
        case .content: 3
        case .expression: 4
        }
    }
}

/// Reads columns of a row, and reports one that does not fit as damage.
struct StoredRow {
    let row: Row
    let table: String

    /// The identifier in `column`.
    func identifier<Identifier: ValidatedIdentifier>(
        _ column: String, as type: Identifier.Type = Identifier.self
    ) throws -> Identifier {
        try require(column, Identifier(rawValue: row[column]))
    }

    /// The identifier in `column`, if it has one.
    func optionalIdentifier<Identifier: ValidatedIdentifier>(
        _ column: String, as type: Identifier.Type = Identifier.self
    ) throws -> Identifier? {
        guard row[column] as String? != nil else { return nil }
        return try identifier(column)
    }

    /// The case of an enumeration in `column`.
    func choice<Choice: RawRepresentable<String>>(
        _ column: String, as type: Choice.Type = Choice.self
    ) throws -> Choice {
        try require(column, Choice(rawValue: row[column]))
    }

    /// The moment in `column`.
    func moment(_ column: String) -> Timestamp {
        Timestamp(stored: row[column])
    }

    /// The JSON value in `column`.
    func json(_ column: String) throws -> JSONValue {
        try json(row[column], of: column)
    }

    /// The JSON in a text that was read from `column`.
    func json(_ text: String, of column: String) throws -> JSONValue {
        try require(column, try? JSONValue(stored: text))
    }

    /// The serial or number in `column`.
    func number(_ column: String) -> UInt64 {
        UInt64(clamping: row[column] as Int64)
    }

    /// The container of the row, in the columns `containerName` and `environment`.
    func containerKey() throws -> ContainerKey {
        ContainerKey(
            container: try identifier("containerName"), environment: try choice("environment"))
    }

    /// Unwraps what was read from `column`.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if there is nothing.
    func require<Value>(_ column: String, _ value: Value?) throws -> Value {
        guard let value else { throw damage(column) }
        return value
    }

    /// Says that `column` does not hold what Belfry writes.
    func damage(_ column: String) -> StorageError {
        .damaged(path: table, reason: "\(table).\(column) holds what Belfry does not write")
    }
}
