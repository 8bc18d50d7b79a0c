import RelayModel

/// A change in the source's own terms: what a preset reads from a body, before the mapping.
struct ReportedChange {
    var operation: ChangeOperation
    var table: ReportedTable
    var before: ReportedImage?
    var after: ReportedImage?
    /// The columns of a row of the same transaction that has taken over this row's former name, if
    /// there is one.
    var formerTakenBy: RecordFields?
    var changedKeys: [String]?
    /// The record's name, if the source states it and no key column is needed.
    var recordName: String?
    /// The columns that name the record, if the source knows the primary key.
    var keyColumns: [String]?
    /// Whether a partial before image is known to include the columns that named the record.
    var formerIsNamed = false
    /// The address that only some formats state, such as the relay's own.
    var stated = StatedPlace()
    var deviceID: String?
    var userID: String?
    var readers: [String]?
    var occurredAt: Timestamp?
    var version: Int64?
    var isSnapshot = false
    /// The source's own position, or its ID of this delivery.
    var key: (kind: DedupeKey.Kind, text: String)?
    /// Whether changes of several records may have this position, so that the record name must be
    /// part of the key.
    var sharesPosition = false
    /// Whether the row after the change was looked up when the change was reported.
    ///
    /// A repeated report, as after a restart, may have a later row but means the same change.
    var isLookedUp = false
    /// Whether the source reports one change several times with different contents.
    ///
    /// Within the window, all reports about the record count as one change.
    var isToldByParts = false

    /// The reason why a truncation is not a change.
    static let truncation = "a truncation names no records, so it cannot be read as changes"

    init(_ operation: ChangeOperation, of table: ReportedTable) {
        self.operation = operation
        self.table = table
    }
}

/// The names of a table, as far as the source states them.
struct ReportedTable {
    var database: String?
    var schema: String?
    var name: String

    /// The name as `schema.table`, or as `table` without a schema.
    var qualifiedName: String { schema.map { "\($0).\(name)" } ?? name }
}

/// The zone, database and owner that a body states.
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
        /// The source sometimes sends the whole row, and sometimes the key with nothing or nulls
        /// besides it.
        case unsure
    }

    var fields: RecordFields
    var completeness: Completeness
    /// The place of the image, for error messages.
    var path: String
}

/// The result of reading one element of a body.
enum Reading {
    case changes([ReportedChange])
    /// Changes beside one that cannot be reported, which must not hold up the others.
    case partly([ReportedChange], JSONContractError)
    case ignored(String)
    /// All rows of a snapshot have been reported.
    case ended(SnapshotEnd)
}

/// One element of a body, and its context.
struct SourceItem {
    let value: JSONValue
    /// The place of the element; empty for the whole body.
    let path: String
    /// The index in the batch, if the element belongs to one.
    let index: Int?
    let headers: WebhookHeaders
    let source: ChangeSource
    /// The values at the pointers of the mapping.
    let pointed = PointedValues()
    /// The headers that a later decoding needs, which all elements of a webhook share.
    var kept = KeptHeaders()

    /// Returns a reader of the element, which must be an object.
    func reader() throws(JSONContractError) -> JSONReader {
        try JSONReader(value, path: path)
    }

    func failure(_ reason: String) -> JSONContractError {
        JSONContractError(path: path, reason: reason)
    }

    /// Returns the value at `place`, with columns taken from `fields`; `nil` if it is absent or
    /// null.
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

    /// Returns a value as a part of a name.
    ///
    /// In rows of the preset `postgres`, a number is a double only if that has all its digits, so
    /// any double can be part of a name.
    func nameText(of value: FieldValue) -> String? {
        if case .double(let number) = value, number.isFinite, source.preset == .postgres {
            return String(number)
        }
        return value.nameText
    }

    /// Returns the table that the mapping names.
    func configuredTable() throws(JSONContractError) -> ReportedTable {
        guard let place = source.mapping.table,
            let name = value(at: place)?.nameText, !name.isEmpty
        else {
            throw failure("there is no table name at the place that the mapping's \"table\" gives")
        }
        return ReportedTable(name: name)
    }
}

/// The headers that a later decoding of a webhook's elements needs, looked up once for all of them.
///
/// A mapping may name thousands, and a thousand elements may be parked.
final class KeptHeaders {
    private var known: [String: String]?

    /// Returns the headers, which `find` looks up the first time.
    func value(or find: () -> [String: String]) -> [String: String] {
        if let known { return known }
        let found = find()
        known = found
        return found
    }
}

/// The values at pointers into one element, each read once.
///
/// A thousand changes of the element may use the same pointer, to a list as long as the body.
final class PointedValues {
    private var known: [JSONPointer: FieldValue?] = [:]

    /// Returns the value at `pointer` in `document`, which must be the same one in every call.
    func value(at pointer: JSONPointer, in document: JSONValue) -> FieldValue? {
        if let value = known[pointer] { return value }
        let value = pointer.value(in: document).map(FieldValue.init(plain:))
        known.updateValue(value, forKey: pointer)
        return value
    }
}
