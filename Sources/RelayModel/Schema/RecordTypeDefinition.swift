/// What a container knows of its record types: which there are, and which fields they have.
public struct ContainerSchema: Sendable, Hashable {
    /// The record types by name.
    public var recordTypes: [RecordType: RecordTypeDefinition]
    /// The roles beside CloudKit's own `_world`, `_icloud` and `_creator`.
    public var roles: [RoleName]

    /// If several record types have one name, the last counts.
    public init(_ recordTypes: [RecordTypeDefinition] = [], roles: [RoleName] = []) {
        self.recordTypes = Dictionary(
            recordTypes.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last })
        self.roles = roles
    }

    /// Whether somebody wrote a record type down; otherwise all there are were inferred.
    public var isRegistered: Bool {
        recordTypes.values.contains { !$0.isInferred }
    }
}

/// One record type.
public struct RecordTypeDefinition: Sendable, Hashable {
    /// The name.
    public var name: RecordType
    /// The fields by name; system fields are understood.
    public var fields: [String: FieldDefinition]
    /// Who may do what with records in the public database.
    public var grants: [RecordGrant]
    /// Whether the last version of each record is kept in the shadow.
    public var isKept: Bool
    /// Whether it was inferred from the records that arrived, and written down by nobody.
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

    /// The fields of a record as this type means them: CloudKit has no boolean, so in a field that
    /// somebody wrote down as INT64 it is 0 or 1, however a database posts it.
    public func meant(_ record: RecordFields) -> RecordFields {
        guard !isInferred else { return record }
        var meant = record
        for (name, value) in record where fields[name]?.type.element == .int64 {
            meant[name] = value.withoutBooleans
        }
        return meant
    }

    /// Takes over what the text of a schema has no words for: which fields are indexed.
    public mutating func keepMarks(of known: RecordTypeDefinition) {
        for (name, field) in known.fields where field.uses.contains(.indexed) {
            guard fields[name]?.uses.contains(.queryable) == true else { continue }
            fields[name]?.uses.insert(.indexed)
        }
    }

    /// Whether everybody of `role` may do this.
    public func grants(_ permission: RecordGrant.Permission, to role: RoleName) -> Bool {
        grants.contains(RecordGrant(permission, to: role))
    }
}

extension FieldValue {
    /// A boolean as a number, by itself and in a list.
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
    /// The change with its fields as the container's schema means them.
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
    /// What it holds.
    public var type: SchemaFieldType
    /// What queries may do with it.
    public var uses: FieldUses
    /// Whether CloudKit would encrypt it; here it is a mark that an export keeps.
    public var isEncrypted: Bool

    /// Describes a field.
    public init(_ type: SchemaFieldType, uses: FieldUses = [], isEncrypted: Bool = false) {
        self.type = type
        self.uses = uses
        self.isEncrypted = isEncrypted
    }
}

/// What queries may do with a field.
public struct FieldUses: OptionSet, Sendable, Hashable {
    /// The bits as they are stored.
    public let rawValue: Int64

    /// Takes bits that came from a ``rawValue``.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// A predicate may name it.
    public static let queryable = FieldUses(rawValue: 1)
    /// Records may be sorted by it.
    public static let sortable = FieldUses(rawValue: 2)
    /// A token search looks into it.
    public static let searchable = FieldUses(rawValue: 4)
    /// The condition of each subscription holds it to constants (Realm's indexed queryable field).
    public static let indexed = FieldUses(rawValue: 8)

    /// The words of CloudKit's schema language, in its order.
    public static let words: [(word: String, use: FieldUses)] = [
        ("QUERYABLE", .queryable), ("SORTABLE", .sortable), ("SEARCHABLE", .searchable),
    ]
}

/// The type of a field: one of CloudKit's, or of those that other databases have, or a list of it.
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

        /// Whether its values are written as texts, and CloudKit has no word for it.
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

    /// A single value unless `isList` says otherwise.
    public init(_ element: Element, isList: Bool = false) {
        self.element = element
        self.isList = isList
    }

    /// Reads `STRING`, `STRING_LIST` and so on, or returns `nil`; `ASSETID` is an asset.
    public init?(word: String) {
        let isList = word.hasSuffix("_LIST")
        let stem = isList ? String(word.dropLast(5)) : word
        guard let element = Element(rawValue: stem == "ASSETID" ? "ASSET" : stem) else {
            return nil
        }
        self.init(element, isList: isList)
    }

    /// CloudKit's word for one that clients write in its place, with or without `_LIST`:
    /// `NUMBER_INT64` and `NUMBER_DOUBLE` as in 2015 and 2016, `INT`, `BYTE` and `DATETIME` as a
    /// client for Kotlin; any other word is answered as it is.
    public static func plain(_ word: String) -> String {
        let isList = word.hasSuffix("_LIST")
        let stem = isList ? String(word.dropLast(5)) : word
        if let element = others[stem] { return isList ? element + "_LIST" : element }
        return word.hasPrefix("NUMBER_") ? String(word.dropFirst("NUMBER_".count)) : word
    }

    private static let others = ["INT": "INT64", "BYTE": "BYTES", "DATETIME": "TIMESTAMP"]

    /// The word of requests: `STRING`, `STRING_LIST`.
    public var description: String { isList ? element.rawValue + "_LIST" : element.rawValue }

    /// The type of a value, or `nil` for no value, and for a list that does not show it.
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
    /// The type of one value, or `nil` for no value; ``any`` for a list.
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

/// Who may do one thing with records of a type in the public database.
public struct RecordGrant: Sendable, Hashable {
    /// What may be done.
    public enum Permission: String, Sendable, Hashable, CaseIterable {
        case read = "READ"
        case create = "CREATE"
        case write = "WRITE"
    }

    /// What may be done.
    public var permission: Permission
    /// By whom: `_world`, `_icloud` (everybody who is signed in), `_creator`, or a role.
    public var role: RoleName

    /// Grants add up: a role has every permission that some grant gives it.
    public init(_ permission: Permission, to role: RoleName) {
        self.permission = permission
        self.role = role
    }

    /// What CloudKit grants unless told otherwise: everybody reads, users create, creators write.
    public static let usual = [
        RecordGrant(.write, to: .creator), RecordGrant(.create, to: .icloud),
        RecordGrant(.read, to: .world),
    ]
}
