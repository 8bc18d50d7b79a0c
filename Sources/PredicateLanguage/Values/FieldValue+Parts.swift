import RelayModel

// What a value consists of, for whoever walks through it.
extension FieldValue {
    /// The elements of a list or set.
    var elements: [FieldValue]? {
        switch self {
        case .list(let values): values
        case .set(let values): Array(values)
        default: nil
        }
    }

    /// The values of a dictionary's members.
    var memberValues: [FieldValue]? {
        if case .map(let members) = self { Array(members.values) } else { nil }
    }

    /// The member of that name, or nil.
    func member(_ name: String) -> FieldValue {
        if case .map(let members) = self { members[name] ?? .null } else { .null }
    }

    /// Whether `@count` counts bytes.
    var hasByteCount: Bool {
        switch self {
        case .string, .bytes: true
        default: false
        }
    }

    /// The bytes of a text or of data.
    var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        default: 0
        }
    }

    /// How many values stand directly inside; `nil` for what is no collection.
    var elementCount: Int? {
        switch self {
        case .list(let values): values.count
        case .set(let values): values.count
        case .map(let members): members.count
        default: nil
        }
    }
}

// A value taken for something else.
extension FieldValue {
    /// This number as a double; `nil` for everything else, booleans included.
    var numberAsDouble: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The record name that a Realm object with this primary key has.
    var primaryKeyText: String? {
        switch self {
        case .string(let text): text
        case .integer(let number): String(number)
        case .uuid(let uuid): uuid.description
        case .objectID(let bytes): Hexadecimal.encode(bytes)
        default: nil
        }
    }
}
