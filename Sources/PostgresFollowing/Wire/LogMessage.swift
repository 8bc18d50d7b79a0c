/// One message of the output plugin pgoutput, protocol version 1.
///
/// See PostgreSQL's documentation, "Logical Replication Message Formats".
package enum LogMessage: Sendable, Hashable {
    /// A committed transaction begins; everything up to its commit belongs to it.
    case begin(commit: PostgresPosition, microseconds: Int64, transaction: UInt32)
    /// The transaction is complete.
    case commit(end: PostgresPosition)
    /// The description of a table from here on.
    case relation(Relation)
    /// An inserted row.
    case insert(relation: UInt32, row: [ColumnValue])
    /// An updated row; `before` is present if the key changed or the replica identity is the whole
    /// row.
    case update(relation: UInt32, before: FormerRow?, row: [ColumnValue])
    /// A deleted row.
    case delete(relation: UInt32, before: FormerRow)
    /// Tables that were truncated.
    case truncate(relations: [UInt32])
    /// A message that `pg_logical_emit_message` wrote.
    case note(prefix: String, content: ArraySlice<UInt8>, isTransactional: Bool)
    /// A message that does not concern rows.
    case other
}

/// A table as it was when the following changes were made.
package struct Relation: Sendable, Hashable {
    /// Its OID in `pg_class`.
    package let id: UInt32
    /// The schema that contains it.
    package let schema: String
    /// Its name, without the schema.
    package let name: String
    /// The replica identity: `d` default, `n` nothing, `f` the whole row, `i` an index.
    package let identity: UInt8
    /// Its columns, in the order of the rows' values.
    package let columns: [RelationColumn]
}

/// A column of a table.
package struct RelationColumn: Sendable, Hashable {
    package let name: String
    /// The OID of its type in `pg_type`.
    package let type: UInt32
    /// Whether it belongs to the table's replica identity.
    package let isIdentity: Bool
}

/// One column of a row.
package enum ColumnValue: Sendable, Hashable {
    case null
    /// A large value that did not change and was not read.
    case unchanged
    /// The value as its type's output function writes it.
    case text(ArraySlice<UInt8>)
}

/// A row before a change.
package enum FormerRow: Sendable, Hashable {
    /// The columns of the replica identity; the others appear as null but are unknown.
    case key([ColumnValue])
    /// The whole row.
    case whole([ColumnValue])

    var values: [ColumnValue] {
        switch self {
        case .key(let values), .whole(let values): values
        }
    }
}

extension LogMessage {
    /// Decodes the message that begins at `start` of `bytes`.
    ///
    /// - Throws: ``MalformedMessage`` if it does not follow the protocol.
    package init(_ bytes: [UInt8], from start: Int = 0) throws(MalformedMessage) {
        var scanner = MessageScanner(bytes, from: start)
        switch try scanner.byte() {
        case UInt8(ascii: "B"):
            self = .begin(
                commit: try scanner.position(), microseconds: try scanner.int64(),
                transaction: try scanner.uint32())
        case UInt8(ascii: "C"):
            _ = try scanner.byte()
            _ = try scanner.position()
            self = .commit(end: try scanner.position())
        case UInt8(ascii: "R"): self = .relation(try Relation(&scanner))
        case UInt8(ascii: "I"):
            let relation = try scanner.uint32()
            guard try scanner.byte() == UInt8(ascii: "N") else {
                throw MalformedMessage("is an insertion without a row")
            }
            self = .insert(relation: relation, row: try scanner.row())
        case UInt8(ascii: "U"): self = try Self.update(&scanner)
        case UInt8(ascii: "D"):
            let relation = try scanner.uint32()
            let kind = try scanner.byte()
            guard let former = try scanner.former(kind) else {
                throw MalformedMessage("is a deletion without a row")
            }
            self = .delete(relation: relation, before: former)
        case UInt8(ascii: "T"):
            let count = try scanner.int32()
            _ = try scanner.byte()
            guard (0...100_000).contains(count) else {
                throw MalformedMessage("names too many tables")
            }
            var relations: [UInt32] = []
            for _ in 0..<count { relations.append(try scanner.uint32()) }
            self = .truncate(relations: relations)
        case UInt8(ascii: "M"):
            let flags = try scanner.byte()
            _ = try scanner.position()
            let prefix = try scanner.text()
            let content = try scanner.slice(try scanner.int32())
            self = .note(prefix: prefix, content: content, isTransactional: flags & 1 == 1)
        // Origins and types are ignored, because the catalogue is queried for types.
        case UInt8(ascii: "O"), UInt8(ascii: "Y"): self = .other
        case let kind: throw MalformedMessage("is of the unknown kind \(kind)")
        }
    }

    private static func update(_ scanner: inout MessageScanner) throws(MalformedMessage) -> Self {
        let relation = try scanner.uint32()
        var kind = try scanner.byte()
        let former = try scanner.former(kind)
        if former != nil { kind = try scanner.byte() }
        guard kind == UInt8(ascii: "N") else {
            throw MalformedMessage("is an update without a row")
        }
        return .update(relation: relation, before: former, row: try scanner.row())
    }
}

private extension Relation {
    init(_ scanner: inout MessageScanner) throws(MalformedMessage) {
        id = try scanner.uint32()
        let schema = try scanner.text()
        // The server sends an empty name for the schema `pg_catalog`.
        self.schema = schema.isEmpty ? "pg_catalog" : schema
        name = try scanner.text()
        identity = try scanner.byte()
        let count = try scanner.int16()
        var columns: [RelationColumn] = []
        for _ in 0..<max(0, count) {
            let flags = try scanner.byte()
            let name = try scanner.text()
            let type = try scanner.uint32()
            _ = try scanner.int32()
            columns.append(RelationColumn(name: name, type: type, isIdentity: flags & 1 == 1))
        }
        self.columns = columns
    }
}

extension MessageScanner {
    /// Decodes the row before a change, if `kind` announces one.
    mutating func former(_ kind: UInt8) throws(MalformedMessage) -> FormerRow? {
        switch kind {
        case UInt8(ascii: "K"): .key(try row())
        case UInt8(ascii: "O"): .whole(try row())
        default: nil
        }
    }

    mutating func row() throws(MalformedMessage) -> [ColumnValue] {
        let count = try int16()
        var values: [ColumnValue] = []
        values.reserveCapacity(max(0, count))
        for _ in 0..<max(0, count) {
            switch try byte() {
            case UInt8(ascii: "n"): values.append(.null)
            case UInt8(ascii: "u"): values.append(.unchanged)
            case UInt8(ascii: "t"): values.append(.text(try slice(try int32())))
            case let kind: throw MalformedMessage("has a value of the unknown kind \(kind)")
            }
        }
        return values
    }
}
