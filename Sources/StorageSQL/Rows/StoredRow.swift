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
