import ChangeSources
import RelayModel

/// A row in the form in which it is posted, which becomes shorter if a request is too long.
struct PostedRow: Sendable {
    private enum Form {
        case whole
        /// The row without its long values, which are then unknown.
        case lightened
        /// Only the key.
        case bare
    }

    private let row: FollowedRow
    private var form = Form.whole
    /// The row as an element of a request's body.
    private(set) var element: [UInt8]

    init(_ row: FollowedRow) {
        self.row = row
        element = JSONValue.object(row.json).utf8
    }

    /// Whether values are left out.
    var isShortened: Bool { form != .whole }

    /// Leaves out long values.
    ///
    /// A row that is short in PostgreSQL's text format may be longer as JSON than a request may be.
    mutating func lighten() {
        form = .lightened
        element = JSONValue.object(row.lightened().json).utf8
    }

    /// Changes to the next shorter form; returns `false` if there is none.
    ///
    /// A deletion needs only the key. The relay parks any other change that has only the key. So
    /// the change is not lost, and clients do not see values disappear that still exist.
    mutating func shorten() -> Bool {
        let count = element.count
        if form == .whole {
            lighten()
            if element.count < count { return true }
        }
        guard form != .bare else { return false }
        form = .bare
        element = JSONValue.object(row.bare().json).utf8
        return element.count < count
    }

    /// The table and the key in words, for the follower's status.
    var name: String {
        let image = row.after ?? row.before
        let key = row.key.map { column in
            let value = image?.fields[column].map { $0.notation.text } ?? "?"
            return "\(column)=\(value.prefix(64))"
        }
        return "\(row.schema).\(row.table) (\(key.prefix(4).joined(separator: ", ")))"
    }
}

extension FollowedRow {
    /// Returns this row without its long values.
    func lightened() -> FollowedRow {
        var copy = self
        copy.before = before?.lightened
        copy.after = after?.lightened
        return copy
    }

    /// Returns this row with only its key; unless it is a deletion, it then has no row after the
    /// change.
    func bare() -> FollowedRow {
        var copy = self
        copy.before = ((operation == .delete ? nil : after) ?? before)?.reduced(to: key)
        copy.after = nil
        copy.formerTakenBy = formerTakenBy?.filter { key.contains($0.key) }
        return copy
    }
}

extension RecordImage {
    var lightened: RecordImage {
        RecordImage(
            fields.filter { $0.value.notation.utf8.count <= 1024 }, completeness: .partial)
    }

    /// Returns the image with only the columns of a key whose values are short.
    func reduced(to key: [String]) -> RecordImage {
        let short = lightened
        return RecordImage(
            short.fields.filter { key.contains($0.key) }, completeness: .partial)
    }
}
