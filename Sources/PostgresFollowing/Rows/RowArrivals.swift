import ChangeSources
import RelayModel

/// The names that rows have taken within a transaction while another row may still have them.
///
/// PostgreSQL allows this if a primary key is `DEFERRABLE`, so that rows can change their keys in
/// turn (`SET id = id + 1`). When the other row gives up the name, the record of that name does not
/// end, because it is now the row that took the name.
struct RowArrivals: Sendable {
    /// Rows are distinguished by their values, which is valid only while their table is unchanged.
    private struct Name: Hashable {
        let table: Relation
        let key: [FieldValue]
    }

    private struct Arrival {
        /// Distinguishes the row that took the name from the one that had it.
        let digest: Int
        let fields: RecordFields
    }

    private var arrivals: [Name: Arrival] = [:]

    /// The maximum number of remembered names; usually the next change gives a name up.
    private static let most = 10_000
    /// The maximum length of a part of a name, in bytes; zone and user names are shorter than
    /// record names.
    private static let longestName = Limits.maximumRecordNameBytes

    /// Notes which names a change takes and gives up.
    ///
    /// If another row has taken the changed row's former name, that is recorded in the change.
    mutating func note(_ row: inout FollowedRow, of table: Relation) {
        // A partial former image does not tell which of the two rows it is.
        guard row.operation == .create || row.before?.completeness == .full else { return }
        let former = Self.name(of: row.before, row.key, table)
        let name = Self.name(of: row.after, row.key, table)
        var comes = former != name
        if let former, let before = row.before, let arrival = arrivals[former] {
            if arrival.digest == before.fields.hashValue {
                // This row took the name, and now changes or goes.
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

    /// Returns whether a value may be a name, or a part of one.
    private static func isShort(_ value: FieldValue) -> Bool {
        switch value {
        case .bool, .integer, .double, .timestamp, .uuid: true
        case .string(let text): text.utf8.count <= longestName
        case .bytes(let bytes): bytes.count <= longestName
        default: false
        }
    }
}
