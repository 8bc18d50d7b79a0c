import ChangeSources
import RelayModel

/// Names that rows have come to within a transaction, which other rows may have still.
///
/// PostgreSQL allows that where a primary key is `DEFERRABLE`, so that rows can change their keys
/// in turn (`SET id = id + 1`). The row that leaves a name then does not end the record of that
/// name: the one that has come is it.
struct RowArrivals: Sendable {
    /// Rows are told from each other by their values, and so as long as their table is the same.
    private struct Name: Hashable {
        let table: Relation
        let key: [FieldValue]
    }

    private struct Arrival {
        /// Tells the row that has come from the one that has had the name.
        let digest: Int
        let fields: RecordFields
    }

    private var arrivals: [Name: Arrival] = [:]

    /// As many are remembered; usually a name is left by the next change.
    private static let most = 10_000
    /// No name of a record is longer, and none of a zone or a user is as long.
    private static let longestName = Limits.maximumRecordNameBytes

    /// Notes what a change does to names, and says in it which row has the name that its own had.
    mutating func note(_ row: inout FollowedRow, of table: Relation) {
        // Of a row before that is not whole nobody could say which of two it is.
        guard row.operation == .create || row.before?.completeness == .full else { return }
        let former = Self.name(of: row.before, row.key, table)
        let name = Self.name(of: row.after, row.key, table)
        var comes = former != name
        if let former, let before = row.before, let arrival = arrivals[former] {
            if arrival.digest == before.fields.hashValue {
                // It is the one that came, and goes on, or changes.
                arrivals[former] = nil
                comes = true
            } else if former != name {
                arrivals[former] = nil
                row.formerTakenBy = arrival.fields
            }
        }
        guard comes, let name, let after = row.after, arrivals.count < Self.most else { return }
        arrivals[name] = Arrival(
            digest: after.fields.hashValue, fields: after.fields.filter { Self.isShort($0.value) })
    }

    private static func name(
        of image: RecordImage?, _ columns: [String], _ table: Relation
    ) -> Name? {
        guard let image, !columns.isEmpty else { return nil }
        let key = columns.compactMap { image.fields[$0] }
        return key.count == columns.count ? Name(table: table, key: key) : nil
    }

    /// Whether a value may be a name, or a part of one.
    private static func isShort(_ value: FieldValue) -> Bool {
        switch value {
        case .bool, .integer, .double, .timestamp, .uuid: true
        case .string(let text): text.utf8.count <= longestName
        case .bytes(let bytes): bytes.count <= longestName
        default: false
        }
    }
}
