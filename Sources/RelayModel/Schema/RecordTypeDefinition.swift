/// The record types of a container and their fields, as far as the relay knows them.
public struct ContainerSchema: Sendable, Hashable {
    /// The record types by name.
    public var recordTypes: [RecordType: RecordTypeDefinition]
    /// The roles other than CloudKit's own `_world`, `_icloud` and `_creator`.
    public var roles: [RoleName]
    /// How often it was changed who may read the records of some type; the store counts it.
    package var readGeneration: Int64 = 0

    /// Creates a schema; if several record types have the same name, the last one counts.
    public init(_ recordTypes: [RecordTypeDefinition] = [], roles: [RoleName] = []) {
        self.recordTypes = Dictionary(
            recordTypes.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last })
        self.roles = roles
    }

    /// Returns the number of record types, fields and roles in which two schemas differ.
    ///
    /// - Complexity: O(*n*) in the fields of both.
    package func differences(from other: ContainerSchema) -> Int {
        var count = Set(roles).symmetricDifference(other.roles).count
        for name in Set(recordTypes.keys).union(other.recordTypes.keys) {
            let (type, known) = (recordTypes[name], other.recordTypes[name])
            guard type != known else { continue }
            count += 1 + (type?.fieldChanges(from: known) ?? known.map(\.fields.count) ?? 0)
        }
        return count
    }

    /// Whether any record type was defined explicitly; otherwise all of them were inferred.
    public var isRegistered: Bool {
        recordTypes.values.contains { !$0.isInferred }
    }
}

/// One record type.
public struct RecordTypeDefinition: Sendable, Hashable {
    /// The name.
    public var name: RecordType
    /// The fields by name; system fields are implied.
    public var fields: [String: FieldDefinition]
    /// The permissions for records in the public database.
    public var grants: [RecordGrant]
    /// Whether the last version of each record is kept in the shadow.
    public var isKept: Bool
    /// Whether the type was inferred from records that arrived, and not defined explicitly.
    public var isInferred: Bool

    /// Creates a record type with CloudKit's usual grants.
    public init(
        _ name: RecordType, fields: [String: FieldDefinition] = [:],
        grants: [RecordGrant] = RecordGrant.usual, isKept: Bool = true, isInferred: Bool = false
    ) {
        self.name = name
        self.fields = fields
        self.grants = grants
        self.isKept = isKept
        self.isInferred = isInferred
    }

    /// Returns the number of fields that are defined here and not in `known`, or otherwise, or
    /// there alone.
    func fieldChanges(from known: RecordTypeDefinition?) -> Int {
        guard let known else { return fields.count }
        return fields.count { known.fields[$0.key] != $0.value }
            + known.fields.keys.count { fields[$0] == nil }
    }

    /// Returns the fields of a record with the types that this definition gives them.
    ///
    /// CloudKit has no booleans: in a field that is explicitly defined as INT64, a boolean from a
    /// database becomes 0 or 1.
    public func meant(_ record: RecordFields) -> RecordFields {
        guard !isInferred else { return record }
        var meant = record
        for (name, value) in record where fields[name]?.type.element == .int64 {
            meant[name] = value.withoutBooleans
        }
        return meant
    }

    /// Takes over from `known` which queryable fields are indexed; the text of a schema cannot
    /// express it.
    public mutating func keepMarks(of known: RecordTypeDefinition) {
        for (name, field) in known.fields where field.uses.contains(.indexed) {
            guard fields[name]?.uses.contains(.queryable) == true else { continue }
            fields[name]?.uses.insert(.indexed)
        }
    }

    /// Returns whether members of `role` have this permission.
    public func grants(_ permission: RecordGrant.Permission, to role: RoleName) -> Bool {
        grants.contains(RecordGrant(permission, to: role))
    }
}

extension FieldValue {
    /// This value with booleans as numbers, also in lists and sets.
    var withoutBooleans: FieldValue {
        switch self {
        case .bool(let flag): .integer(flag ? 1 : 0)
        case .list(let values): .list(values.map(\.withoutBooleans))
        case .set(let values): .set(Set(values.map(\.withoutBooleans)))
        default: self
        }
    }
}

extension RecordChange {
    /// Returns the change with its fields as the container's schema types them.
    public func meant(by schema: ContainerSchema) -> RecordChange {
        guard let definition = schema.recordTypes[recordType], !definition.isInferred else {
            return self
        }
        var change = self
        change.before?.fields = definition.meant(before?.fields ?? [:])
        change.after?.fields = definition.meant(after?.fields ?? [:])
        return change
    }
}

/// One field of a record type.
public struct FieldDefinition: Sendable, Hashable {
    /// The type of the field's values.
    public var type: SchemaFieldType
    /// What queries may do with it.
    public var uses: FieldUses
    /// Whether CloudKit would encrypt the field; here it is only a mark that an export keeps.
    public var isEncrypted: Bool

    /// Creates the definition of a field.
    public init(_ type: SchemaFieldType, uses: FieldUses = [], isEncrypted: Bool = false) {
        self.type = type
        self.uses = uses
        self.isEncrypted = isEncrypted
    }
}

/// The operations that queries may use on a field.
public struct FieldUses: OptionSet, Sendable, Hashable {
    /// The bits, in the form in which they are stored.
    public let rawValue: Int64

    /// Creates a set from a stored ``rawValue``.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Predicates may use the field.
    public static let queryable = FieldUses(rawValue: 1)
    /// Records may be sorted by the field.
    public static let sortable = FieldUses(rawValue: 2)
    /// Token searches include the field.
    public static let searchable = FieldUses(rawValue: 4)
    /// Every subscription's condition must compare the field with constants (Realm's indexed
    /// queryable field).
    public static let indexed = FieldUses(rawValue: 8)

    /// The words of CloudKit's schema language, in its order.
    public static let words: [(word: String, use: FieldUses)] = [
        ("QUERYABLE", .queryable), ("SORTABLE", .sortable), ("SEARCHABLE", .searchable),
    ]
}

/// The type of a field: one of CloudKit's types, a type of another database, or a list of either.
public struct SchemaFieldType: Sendable, Hashable, CustomStringConvertible {
    /// The type of one value.
    public enum Element: String, Sendable, Hashable, CaseIterable {
        case string = "STRING"
        case int64 = "INT64"
        case double = "DOUBLE"
        case timestamp = "TIMESTAMP"
        case bytes = "BYTES"
        case reference = "REFERENCE"
        case location = "LOCATION"
        case asset = "ASSET"
        case boolean = "BOOLEAN"
        case uuid = "UUID"
        case objectID = "OBJECTID"
        case map = "MAP"
        case any = "ANY"

        /// Whether values of this type are written as text and CloudKit has no word for the type.
        package var isNamedByText: Bool { self == .uuid || self == .objectID }

        /// Whether CloudKit has this type.
        public var isOfCloudKit: Bool {
            switch self {
            case .boolean, .uuid, .objectID, .map, .any: false
            default: true
            }
        }
    }

    /// The type of the value, or of each element.
    public var element: Element
    /// Whether the field holds a list.
    public var isList: Bool

    /// Creates the type of a single value, or of a list if `isList` is true.
    public init(_ element: Element, isList: Bool = false) {
        self.element = element
        self.isList = isList
    }

    /// Reads `STRING`, `STRING_LIST` and so on, or returns `nil`; `ASSETID` is read as an asset.
    public init?(word: String) {
        let isList = word.hasSuffix("_LIST")
        let stem = isList ? String(word.dropLast(5)) : word
        guard let element = Element(rawValue: stem == "ASSETID" ? "ASSET" : stem) else {
            return nil
        }
        self.init(element, isList: isList)
    }

    /// Returns CloudKit's word for a variant that clients write, with or without `_LIST`.
    ///
    /// The variants are `NUMBER_INT64` and `NUMBER_DOUBLE` from 2015 and 2016, and `INT`, `BYTE`
    /// and `DATETIME` from a client for Kotlin. Any other word is returned unchanged.
    public static func plain(_ word: String) -> String {
        let isList = word.hasSuffix("_LIST")
        let stem = isList ? String(word.dropLast(5)) : word
        if let element = others[stem] { return isList ? element + "_LIST" : element }
        return word.hasPrefix("NUMBER_") ? String(word.dropFirst("NUMBER_".count)) : word
    }

    private static let others = ["INT": "INT64", "BYTE": "BYTES", "DATETIME": "TIMESTAMP"]

    /// The word in requests: `STRING`, `STRING_LIST`.
    public var description: String { isList ? element.rawValue + "_LIST" : element.rawValue }

    /// Creates the type of a value, or returns `nil` for null and for a list whose elements do not
    /// show their type.
    public init?(of value: FieldValue) {
        if case .list(let values) = value {
            let types = Set(values.compactMap(Element.init(of:)))
            guard let first = types.first else { return nil }
            self.init(types.count == 1 ? first : .any, isList: true)
        } else if let element = Element(of: value) {
            self.init(element)
        } else {
            return nil
        }
    }
}

extension SchemaFieldType.Element {
    /// Creates the type of one value, or returns `nil` for null; a list or set is ``any``.
    public init?(of value: FieldValue) {
        switch value {
        case .null: return nil
        case .bool: self = .boolean
        case .integer: self = .int64
        case .double: self = .double
        case .string: self = .string
        case .timestamp: self = .timestamp
        case .bytes: self = .bytes
        case .reference: self = .reference
        case .location: self = .location
        case .uuid: self = .uuid
        case .objectID: self = .objectID
        case .map(let members): self = members["fileChecksum"] == nil ? .map : .asset
        case .list, .set: self = .any
        }
    }
}

/// A permission for records of a type in the public database.
public struct RecordGrant: Sendable, Hashable {
    /// An operation that can be granted.
    public enum Permission: String, Sendable, Hashable, CaseIterable {
        case read = "READ"
        case create = "CREATE"
        case write = "WRITE"
    }

    /// The granted operation.
    public var permission: Permission
    /// The role: `_world`, `_icloud` (every signed-in user), `_creator`, or another role.
    public var role: RoleName

    /// Creates a grant; grants add up, so a role has every permission that any grant gives it.
    public init(_ permission: Permission, to role: RoleName) {
        self.permission = permission
        self.role = role
    }

    /// CloudKit's default grants: everyone reads, signed-in users create, the creator writes.
    public static let usual = [
        RecordGrant(.write, to: .creator), RecordGrant(.create, to: .icloud),
        RecordGrant(.read, to: .world),
    ]
}
