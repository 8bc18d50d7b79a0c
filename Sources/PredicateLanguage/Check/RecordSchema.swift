/// What is known of the fields of one record type.
public struct RecordSchema: Sendable, Hashable {
    /// The kind of a field.
    public indirect enum FieldType: Sendable, Hashable {
        /// Text.
        case string
        /// A 64-bit integer.
        case integer
        /// A floating-point number.
        case double
        /// A truth value.
        case boolean
        /// A moment.
        case timestamp
        /// Bytes.
        case bytes
        /// A reference to a record.
        case reference
        /// A place.
        case location
        /// A UUID.
        case uuid
        /// An object ID.
        case objectID
        /// A list of elements of one type.
        case list(FieldType)
        /// An embedded object; `nil` where its members are not known.
        case map([String: Field]?)
        /// A field that may hold anything.
        case mixed
    }

    /// What is known of one field.
    public struct Field: Sendable, Hashable {
        /// Its kind.
        public var type: FieldType
        /// Whether a predicate may use it.
        public var isQueryable: Bool
        /// Whether every RQL query must compare it with constants (Realm's indexed queryable
        /// field).
        public var isIndexedQueryable: Bool

        /// Describes a field that may be used by a predicate.
        public init(
            _ type: FieldType, isQueryable: Bool = true, isIndexedQueryable: Bool = false
        ) {
            self.type = type
            self.isQueryable = isQueryable
            self.isIndexedQueryable = isIndexedQueryable
        }
    }

    /// The fields by name.
    public var fields: [String: Field]

    /// Creates a schema.
    public init(_ fields: [String: Field]) {
        self.fields = fields
    }
}
