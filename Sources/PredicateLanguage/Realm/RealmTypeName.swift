import RelayModel

/// The kinds of values that RQL's `@type` distinguishes.
enum RealmTypeName: String, CaseIterable {
    case null
    case bool
    case int
    case double
    case string
    case binary
    case date
    case objectID = "objectid"
    case uuid
    case link = "objectlink"
    case array
    case set
    case object
    case location
    /// An integer or a double.
    case numeric
    /// A list, set or dictionary.
    case collection

    /// Creates the kind of a value.
    init(of value: FieldValue) {
        self =
            switch value {
            case .null: .null
            case .bool: .bool
            case .integer: .int
            case .double: .double
            case .string: .string
            case .timestamp: .date
            case .bytes: .binary
            case .reference: .link
            case .location: .location
            case .uuid: .uuid
            case .objectID: .objectID
            case .list: .array
            case .set: .set
            case .map: .object
            }
    }

    /// Creates the kind that a query names, ignoring case, or returns `nil` if there is no such
    /// kind.
    init?(queried name: String) {
        let name = name.lowercased()
        guard let kind = Self(rawValue: name) ?? Self.synonyms[name] else {
            return nil
        }
        self = kind
    }

    private static let synonyms: [String: RealmTypeName] = [
        "boolean": .bool, "integer": .int, "int16": .int, "int32": .int, "int64": .int,
        "short": .int, "long": .int, "byte": .int, "char": .int,
        "float": .double, "decimal": .double, "decimal128": .double,
        "str": .string, "data": .binary, "bytearray": .binary, "byte[]": .binary,
        "timestamp": .date, "datetime": .date, "datetimeoffset": .date, "guid": .uuid,
        "link": .link, "number": .numeric, "list": .array, "dictionary": .object,
    ]

    private func includes(_ kind: RealmTypeName) -> Bool {
        switch self {
        case .numeric: kind == .int || kind == .double
        case .collection: kind == .array || kind == .set || kind == .object
        case .link: kind == .link || kind == .object
        default: self == kind
        }
    }

    /// Returns whether two names mean the same kind, or one kind includes the other.
    static func areAlike(_ left: FieldValue, _ right: FieldValue) -> Bool {
        guard case .string(let one) = left, case .string(let other) = right,
            let first = RealmTypeName(queried: one), let second = RealmTypeName(queried: other)
        else { return false }
        return first.includes(second) || second.includes(first)
    }
}

extension RealmTypeName {
    /// Returns whether a field of this type may hold a value of the kind.
    ///
    /// Every field may be nil.
    ///
    /// A number field may hold a boolean and the reverse. Binary data may be stored as its text.
    func mayBe(of type: RecordSchema.FieldType) -> Bool {
        switch type {
        case .integer, .double, .boolean:
            [.null, .int, .double, .bool, .numeric].contains(self)
        case .string: self == .null || self == .string
        case .timestamp: self == .null || self == .date
        case .bytes: self == .null || self == .binary || self == .string
        case .uuid: self == .null || self == .uuid
        case .objectID: self == .null || self == .objectID
        case .reference, .location, .list, .map, .mixed: true
        }
    }
}
