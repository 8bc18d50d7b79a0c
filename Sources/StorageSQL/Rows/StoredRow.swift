import FoundationEssentials
import RelayModel
import Storage

extension DeliveryID {
    var stored: Data { Data(uuid.bytes) }

    init?(stored: Data) {
        guard let uuid = UUIDBytes(bytes: stored) else { return nil }
        self.init(uuid)
    }
}

/// Reads columns of a row, and reports an unexpected value as damage.
struct StoredRow {
    let row: Row
    let table: String

    /// Returns the identifier in `column`.
    func identifier<Identifier: ValidatedIdentifier>(
        _ column: String, as type: Identifier.Type = Identifier.self
    ) throws -> Identifier {
        try require(column, Identifier(rawValue: row[column]))
    }

    /// Returns the identifier in `column`, or `nil` if it is NULL.
    func optionalIdentifier<Identifier: ValidatedIdentifier>(
        _ column: String, as type: Identifier.Type = Identifier.self
    ) throws -> Identifier? {
        guard row[column] as String? != nil else { return nil }
        return try identifier(column)
    }

    /// Returns the enumeration case in `column`.
    func choice<Choice: RawRepresentable<String>>(
        _ column: String, as type: Choice.Type = Choice.self
    ) throws -> Choice {
        try require(column, Choice(rawValue: row[column]))
    }

    /// Returns the moment in `column`.
    func moment(_ column: String) -> Timestamp {
        Timestamp(stored: row[column])
    }

    /// Returns the JSON value in `column`.
    func json(_ column: String) throws -> JSONValue {
        try json(row[column], of: column)
    }

    /// Parses a JSON text that was read from `column`.
    func json(_ text: String, of column: String) throws -> JSONValue {
        try require(column, try? JSONValue(stored: text))
    }

    /// Returns the serial or number in `column`.
    func number(_ column: String) -> UInt64 {
        UInt64(clamping: row[column] as Int64)
    }

    /// Returns the container of the row, from the columns `containerName` and `environment`.
    func containerKey() throws -> ContainerKey {
        ContainerKey(
            container: try identifier("containerName"), environment: try choice("environment"))
    }

    /// Unwraps a value that was read from `column`.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if it is `nil`.
    func require<Value>(_ column: String, _ value: Value?) throws -> Value {
        guard let value else { throw damage(column) }
        return value
    }

    /// Returns the error that `column` does not hold what Belfry writes.
    func damage(_ column: String) -> StorageError {
        .damaged(
            path: table, reason: "\(table).\(column) contains a value that Belfry does not write")
    }
}
