import RelayModel

/// A change in the source's own words: what a preset reads from a body, before the mapping.
struct ReportedChange {
    var operation: ChangeOperation
    var table: ReportedTable
    var before: ReportedImage?
    var after: ReportedImage?
    /// The row of the same transaction that has come to the name which this one had, where one has.
    var formerTakenBy: RecordFields?
    var changedKeys: [String]?
    /// The record's name, where the source says it and no key column is needed.
    var recordName: String?
    /// The columns that name the record, where the source knows the primary key.
    var keyColumns: [String]?
    /// Whether a row before that is not whole has what named it then, where that is known.
    var formerIsNamed = false
    /// What only the relay's own format says by itself.
    var stated = StatedPlace()
    var deviceID: String?
    var userID: String?
    var readers: [String]?
    var occurredAt: Timestamp?
    var version: Int64?
    var isSnapshot = false
    /// The source's own position, or its ID of this delivery.
    var key: (kind: DedupeKey.Kind, text: String)?
    /// Whether changes of several records may have this position, so that the name is part of it.
    var sharesPosition = false
    /// Whether the row after the change was looked up when it was told: who tells of it again, as
    /// after a restart, may have a later one, and means the same change.
    var isLookedUp = false
    /// Whether the source tells of one change several times, each with another content: whatever it
    /// says of the record is one change within the window.
    var isToldByParts = false

    /// Why a truncation is no change.
    static let truncation = "a truncation names no record, so that nobody can be told of it"

    init(_ operation: ChangeOperation, of table: ReportedTable) {
        self.operation = operation
        self.table = table
    }
}

/// The names of a table, as far as the source says them.
struct ReportedTable {
    var database: String?
    var schema: String?
    var name: String

    /// `schema.table`, where there is a schema.
    var qualifiedName: String { schema.map { "\($0).\(name)" } ?? name }
}

/// Zone, database and owner, where a body states them.
struct StatedPlace {
    var zoneID: ZoneID?
    var database: DatabaseScope?
    var owner: UserID?
}

/// A row before or after a change.
struct ReportedImage {
    /// How much of the row the image shows.
    enum Completeness {
        case full
        case partial
        /// The source sends sometimes all, and sometimes the key with nothing or nulls around it.
        case unsure
    }

    var fields: RecordFields
    var completeness: Completeness
    /// Where the image stands, for errors.
    var path: String
}

/// What a preset reads from one element of a body.
enum Reading {
    case changes([ReportedChange])
    /// Changes beside one that nobody can be told of, which must not hold up the others.
    case partly([ReportedChange], JSONContractError)
    case ignored(String)
}

/// One element of a body, and what is around it.
struct SourceItem {
    let value: JSONValue
    /// Where the element stands; empty for the whole body.
    let path: String
    /// Its place in the batch, if it is in one.
    let index: Int?
    let headers: WebhookHeaders
    let source: ChangeSource
    /// What stands where the mapping points.
    let pointed = PointedValues()

    /// A reader of the element, which must be an object.
    func reader() throws(JSONContractError) -> JSONReader {
        try JSONReader(value, path: path)
    }

    func failure(_ reason: String) -> JSONContractError {
        JSONContractError(path: path, reason: reason)
    }

    /// The value at `place`, with `fields` for its columns; `nil` if absent or null.
    func value(at place: ValuePlace, fields: RecordFields...) -> FieldValue? {
        let found: FieldValue?
        switch place {
        case .constant(let text): found = .string(text)
        case .header(let name): found = headers[name].map(FieldValue.string)
        case .column(let name): found = fields.lazy.compactMap { $0[name] }.first
        case .pointer(let pointer): found = pointed.value(at: pointer, in: value)
        }
        return found.flatMap { $0.isNull ? nil : $0 }
    }

    /// A value as a part of a name; what is read of PostgreSQL's own numbers is a double only where
    /// that has all their digits.
    func nameText(of value: FieldValue) -> String? {
        if case .double(let number) = value, number.isFinite, source.preset == .postgres {
            return String(number)
        }
        return value.nameText
    }

    /// The table that the mapping names.
    func configuredTable() throws(JSONContractError) -> ReportedTable {
        guard let place = source.mapping.table,
            let name = value(at: place)?.nameText, !name.isEmpty
        else {
            throw failure("the table is not named where the mapping's \"table\" says")
        }
        return ReportedTable(name: name)
    }
}

/// What stands at places in an element, each read once: a thousand changes of it may name the same
/// place, with a list as long as the body.
final class PointedValues {
    private var known: [JSONPointer: FieldValue?] = [:]

    /// The value at `pointer` of `document`, which is always the same one.
    func value(at pointer: JSONPointer, in document: JSONValue) -> FieldValue? {
        if let value = known[pointer] { return value }
        let value = pointer.value(in: document).map(FieldValue.init(plain:))
        known.updateValue(value, forKey: pointer)
        return value
    }
}
