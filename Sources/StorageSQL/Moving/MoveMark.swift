package import FoundationEssentials
import RelayModel
package import Storage

/// The mark that a store has while it is moved and afterwards, which keeps relays from starting on
/// it.
///
/// It lies in the table `storeMove`, which an engine always has or creates for it.
package struct MoveMark: Sendable, Hashable {
    /// The end of the move that the store is.
    package enum Direction: String, Sendable {
        /// Rows are moved into the store.
        case here
        /// The rows of the store were moved away, or are being moved away.
        case away
    }

    package let direction: Direction
    /// The identity of the moved store.
    package let identity: Data
    /// The location of the other end.
    package let place: String
    /// The table whose rows were written last; empty if none was.
    var table = ""
    /// The key of the last written row; `nil` if there is none.
    var lastKey: [SQLValue]?
    /// The number of written rows of that table.
    var rows: Int64 = 0

    init(_ direction: Direction, _ identity: Data, place: String) {
        self.direction = direction
        self.identity = identity
        self.place = place
    }

    /// Returns the mark of a store, or `nil` if it has none.
    package static func find(in db: Database) throws -> MoveMark? {
        if db.dialect == .sqlite {
            let tables = try Int.fetchOne(
                db, sql: "SELECT count(*) FROM sqlite_schema WHERE name = 'storeMove'")
            if tables == 0 { return nil }
        }
        let row = try Row.fetchOne(
            db,
            sql: "SELECT direction, identity, place, tableName, lastKey, rowCount FROM storeMove")
        guard let row else { return nil }
        let lastKey: String? = row[4]
        guard let direction = Direction(rawValue: row[0] as String),
            let key = lastKey.map(MoveKey.decode) ?? .some(nil)
        else { throw StorageError.damaged(path: "storeMove", reason: "it cannot be read") }
        var mark = MoveMark(direction, row[1], place: row[2])
        mark.table = row[3]
        mark.lastKey = key
        mark.rows = row[5]
        return mark
    }

    /// Writes the mark, replacing an existing one.
    func write(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM storeMove")
        try db.execute(
            sql: """
                INSERT INTO storeMove (id, direction, identity, place, tableName, lastKey, rowCount)
                VALUES (1, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                direction.rawValue, identity, place, table, try lastKey.map(MoveKey.encode), rows,
            ])
    }

    /// The first problem that a check reports about a store into which rows are still being moved.
    var incompleteness: String {
        "the rows of \(place) are being moved into it, but not all have arrived: run belfry move "
            + "again to finish"
    }

    /// Returns the error for a relay that tries to open the store at `path`.
    package func refusal(at path: String) -> StorageError {
        Self.refusal(of: direction, otherEnd: place, at: path)
    }

    /// Returns the error for a relay that tries to open the store at `path`, whose mark has this
    /// direction.
    package static func refusal(
        of direction: Direction, otherEnd place: String, at path: String
    ) -> StorageError {
        let reason =
            switch direction {
            case .here:
                "the rows of \(place) are being moved into it: run belfry move again to finish, "
                    + "then start"
            case .away:
                "it was moved to \(place), or is being moved: start there, or run belfry move "
                    + "again to finish; to use it as a store again, run belfry move --take-back"
            }
        return .inaccessible(path: path, reason: reason)
    }
}

/// The text form of a row's key.
enum MoveKey {
    static func encode(_ values: [SQLValue]) throws -> String {
        try JSONValue.array(
            values.map { value in
                switch value {
                case .integer(let number): .integer(number)
                case .text(let text): .string(text)
                case .bytes(let bytes):
                    .object(["bytes": .string(Hexadecimal.encode(Array(bytes)))])
                case .real, .null:
                    throw StorageError.damaged(path: "storeMove", reason: "no such key")
                }
            }
        ).storedText()
    }

    static func decode(_ text: String) -> [SQLValue]? {
        guard case .array(let values)? = try? JSONValue(stored: text) else { return nil }
        let key = values.compactMap { value -> SQLValue? in
            switch value {
            case .integer(let number): return .integer(number)
            case .string(let text): return .text(text)
            case .object(let object):
                guard case .string(let digits)? = object["bytes"] else { return nil }
                return Hexadecimal.decode(digits).map { .bytes(Data($0)) }
            default: return nil
            }
        }
        return key.count == values.count ? key : nil
    }
}
