import ChangeSources
import PostgresLink
import RelayModel

/// Decodes rows of an outbox as changes.
///
/// A row itself says which columns its table had; the table's key comes from the catalogue.
struct OutboxReader {
    private struct ShapeKey: Hashable {
        let relation: String
        let columns: String
    }

    /// A table as it was, without generated columns, which the log does not have either.
    private struct Shape {
        let table: TableShape
        /// For each field of a row, whether it is part of the change.
        let isTold: [Bool]
    }

    private let identity: String
    /// The base that is added to the numbers of rows to get versions.
    private let base: Int64
    private let database: String
    private var types: TypeCatalogue
    private var shapes: [ShapeKey: Shape] = [:]
    /// The names that rows have taken within the last transaction that was read.
    private var arrivals = RowArrivals()
    private var transaction: String?
    /// The numbers of the rows of this batch whose tables have a `DEFERRABLE` key.
    private var movable: [Int64] = []
    /// The number of values that were left out because their row is too large or cannot be decoded.
    private(set) var valuesLeftOut: UInt64 = 0
    /// The number of transactions whose declaration of an author names neither a device nor a user.
    private(set) var authorsUnread: UInt64 = 0
    /// The last of these transactions.
    private var unread: String?

    /// The maximum number of remembered tables, counting each of their forms.
    private static let maximumShapes = 1000

    init(identity: String, base: Int64, database: String, types: TypeCatalogue) {
        self.identity = identity
        self.base = base
        self.database = database
        self.types = types
    }

    /// Reads the rows with these numbers, in their order.
    ///
    /// - Returns: The rows, and the numbers of those whose tables have a `DEFERRABLE` key, which
    ///   are needed to tell which names a later row of the same transaction takes and gives up.
    mutating func batch(
        of numbers: [Int64], _ catalogue: Catalogue
    ) throws -> (batch: RowBatch, movable: [Int64]) {
        let rows = try catalogue.connection.rows(
            """
            SELECT number, transaction,
                CASE WHEN at BETWEEN '0001-01-01 00:00:00Z' AND '9999-12-31 23:59:59Z'
                    THEN (extract(epoch FROM at) * 1000000)::bigint END,
                operation, relation, "schema", "table", columns, before, after, origin
            FROM belfry.outbox JOIN unnest($1::bigint[]) WITH ORDINALITY AS wanted (number, place)
            USING (number) ORDER BY place
            """, [numbers.arrayText])
        var batch = RowBatch()
        movable = []
        for row in rows {
            guard row.count == 11 else { throw MalformedMessage("has another number of columns") }
            // The images are kept as bytes, because they need not be UTF-8.
            let words = row[..<8].map { $0.map { String(decoding: $0, as: UTF8.self) } }
            batch.rows.append(try change(words.map { $0 ?? "" }, words, row, catalogue))
        }
        return (batch, movable)
    }

    private static let operations: [String: FollowedRow.Operation] = [
        "INSERT": .create, "UPDATE": .update, "DELETE": .delete, "TRUNCATE": .truncate,
    ]

    /// Converts microseconds since 1970, which may be negative.
    ///
    /// It is `nil` for a time that no record can have, which the owner of the database may have
    /// written.
    private static func moment(_ microseconds: String) -> Timestamp? {
        guard let count = Int64(microseconds) else { return nil }
        let (seconds, rest) = count.quotientAndRemainder(dividingBy: 1_000_000)
        let isBelow = rest < 0
        return Timestamp(
            seconds: isBelow ? seconds - 1 : seconds,
            nanoseconds: Int32((isBelow ? rest + 1_000_000 : rest) * 1000))
    }

    private mutating func change(
        _ row: [String], _ given: [String?], _ written: [[UInt8]?], _ catalogue: Catalogue
    ) throws -> FollowedRow {
        guard let operation = Self.operations[row[3]], let number = Int64(row[0]) else {
            throw MalformedMessage(
                "is row \(row[0]) of belfry.outbox, which is not valid: delete it")
        }
        // A row that cannot be decoded becomes a change without images, which is parked. Otherwise
        // the rows after it would wait for ever.
        var shape: Shape?
        do {
            shape = try given[7].map { try self.shape(row, columns: $0, catalogue) }
        } catch is MalformedMessage {
            valuesLeftOut += 1
        }
        var change = FollowedRow(
            operation, schema: row[5], table: row[6], key: shape?.table.key ?? [],
            // A server that was restored from a backup reuses numbers and transactions, but at
            // another time.
            position: "\(identity)/\(row[1])/\(row[0])/\(row[2])")
        change.database = database
        change.version = number &+ base
        change.occurredAt = Self.moment(row[2])
        if let said = written[10], !said.isEmpty {
            let author = ChangeAuthor(said)
            (change.deviceID, change.userID) = (author?.deviceID, author?.userID)
            if author == nil, unread != row[1] {
                unread = row[1]
                authorsUnread += 1
            }
        }
        if let shape {
            if shape.table.isKeyDeferrable { movable.append(number) }
            var images = RowBuilder(shape.table)
            do {
                let before = try written[8].map { try images.row(Self.values($0, shape)) }
                let after = try written[9].map { try images.row(Self.values($0, shape)) }
                (change.before, change.after) = (before, after)
                valuesLeftOut += images.leftOut
                if shape.table.isKeyDeferrable { note(&change, shape, of: row[1]) }
            } catch is MalformedMessage {
                valuesLeftOut += 1
            }
        }
        return change
    }

    /// Notes which names a change of a transaction takes and gives up.
    private mutating func note(
        _ change: inout FollowedRow, _ shape: Shape, of transaction: String
    ) {
        if self.transaction != transaction {
            self.transaction = transaction
            arrivals = RowArrivals()
        }
        arrivals.note(&change, of: shape.table.relation)
    }

    private static func values(
        _ text: [UInt8], _ shape: Shape
    ) throws(MalformedMessage) -> [ColumnValue] {
        guard let record = RecordText(text), record.values.count == shape.isTold.count else {
            throw MalformedMessage("has a row that cannot be read")
        }
        return zip(record.values, shape.isTold).filter(\.1).map(\.0)
    }

    private mutating func shape(
        _ row: [String], columns: String, _ catalogue: Catalogue
    ) throws -> Shape {
        let key = ShapeKey(relation: row[4], columns: columns)
        if let known = shapes[key] { return known }
        guard let id = UInt32(row[4]) else { throw MalformedMessage("does not name its table") }
        var described = try Self.columns(columns)
        if described.contains(where: { $0.type == OutboxSQL.unknownType }) {
            described = Self.completed(described, by: try catalogue.columnTypes(of: id))
        }
        // A generated column has no type here.
        let isTold = described.map { $0.type != 0 }
        if !described.allSatisfy({ types.knows($0.type) }) { types = try catalogue.types() }
        let relation = Relation(
            id: id, schema: row[5], name: row[6], identity: UInt8(ascii: "f"),
            columns: described.filter { $0.type != 0 })
        var namingKey = try catalogue.namingKey(of: id)
        if !relation.has(namingKey) {
            let now = try catalogue.columns(of: id, by: nil)
            namingKey = relation.formerNames(of: namingKey, among: now) ?? namingKey
        }
        let shape = Shape(
            table: TableShape(
                relation, namingKey: namingKey, types: types,
                isKeyDeferrable: try catalogue.isKeyDeferrable(id)),
            isTold: isTold)
        if shapes.count >= Self.maximumShapes { shapes = [:] }
        shapes[key] = shape
        return shape
    }

    /// Returns the columns with the table's present types, where the trigger did not find a type.
    ///
    /// The values of columns that no longer exist are read as texts.
    private static func completed(
        _ columns: [RelationColumn], by types: [String: UInt32]
    ) -> [RelationColumn] {
        columns.map { column in
            guard column.type == OutboxSQL.unknownType, let type = types[column.name] else {
                return column
            }
            return RelationColumn(name: column.name, type: type, isIdentity: false)
        }
    }

    /// Parses the columns of a table, in the form `{{name,type},…}`.
    private static func columns(_ text: String) throws(MalformedMessage) -> [RelationColumn] {
        var list = ArrayText(Array(text.utf8)[...], of: .text)
        let columns = list.list()?.map { pair -> RelationColumn? in
            guard case .list(let parts) = pair, parts.count == 2,
                case .string(let name) = parts[0], case .string(let type) = parts[1],
                let number = UInt32(type)
            else { return nil }
            return RelationColumn(name: name, type: number, isIdentity: false)
        }
        guard let columns, !columns.contains(nil) else {
            throw MalformedMessage("has columns that cannot be read")
        }
        return columns.compactMap { $0 }
    }
}
