import ChangeSources
import RelayModel

/// A row as it is posted, in forms that are ever shorter.
struct PostedRow: Sendable {
    private enum Form {
        case whole
        /// Without its long values, which are unknown then.
        case lightened
        /// Its key alone.
        case bare
    }

    private let row: FollowedRow
    private var form = Form.whole
    /// The element of a request's body.
    private(set) var element: [UInt8]

    init(_ row: FollowedRow) {
        self.row = row
        element = JSONValue.object(row.json).utf8
    }

    /// Whether anything of it is left out.
    var isShortened: Bool { form != .whole }

    /// Takes the form without long values: PostgreSQL's text of a row may be short, and its JSON
    /// longer than a request may be.
    mutating func lighten() {
        form = .lightened
        element = JSONValue.object(row.lightened().json).utf8
    }

    /// Takes a form that is shorter than this one; returns whether there is one.
    ///
    /// A deletion needs no more than the key. The relay parks another change that has no more: so
    /// it is not lost, and nobody is told that values are there no more.
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

    /// The table and the key, for people.
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
    /// This row without its long values.
    func lightened() -> FollowedRow {
        var copy = self
        copy.before = before?.lightened
        copy.after = after?.lightened
        return copy
    }

    /// This row with its key alone; what is no deletion has no row after it then.
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

    /// The columns of a key, as far as they are short.
    func reduced(to key: [String]) -> RecordImage {
        let short = lightened
        return RecordImage(
            short.fields.filter { key.contains($0.key) }, completeness: .partial)
    }
}
