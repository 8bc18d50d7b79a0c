/// The known fields of one record type.
///
/// ```swift
/// let schema = RecordSchema(["price": RecordSchema.Field(.integer)])
/// let condition = try RecordPredicate(format: "prize < 100")
/// #expect(throws: PredicateError.self) {
///     try condition.check(schema: schema, engine: RE2Engine())
/// }
/// ```
public struct RecordSchema: Sendable, Hashable {
    /// The kind of a field.
    public indirect enum FieldType: Sendable, Hashable {
        /// A text.
        case string
        /// A 64-bit integer.
        case integer
        /// A floating-point number.
        case double
        /// A boolean.
        case boolean
        /// A date with a time.
        case timestamp
        /// Binary data.
        case bytes
        /// A reference to a record.
        case reference
        /// A location.
        case location
        /// A UUID.
        case uuid
        /// An object ID.
        case objectID
        /// A list of elements of one type.
        case list(FieldType)
        /// An embedded object, with its members or `nil` if they are not known.
        case map([String: Field]?)
        /// A field that may hold values of any kind.
        case mixed
    }

    /// The type and properties of one field.
    public struct Field: Sendable, Hashable {
        /// The type of the field.
        public var type: FieldType
        /// Whether a predicate may use the field.
        public var isQueryable: Bool
        /// Whether every RQL query must compare the field with constants (Realm's indexed queryable
        /// field).
        public var isIndexedQueryable: Bool

        /// Creates a field, by default one that a predicate may use.
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

    /// Whether records may have other fields, about which nothing is known.
    let isOpen: Bool

    /// The element types of the variables of enclosing subqueries.
    var elements: [String: FieldType] = [:]

    /// Creates a complete schema: records have no other fields.
    public init(_ fields: [String: Field]) {
        self.fields = fields
        isOpen = false
    }

    /// Creates a schema of known fields.
    ///
    /// Records may have others, about which nothing is known.
    ///
    /// A predicate is checked only where it uses one of these fields, or a system field.
    public init(knownOnly fields: [String: Field]) {
        self.fields = fields
        isOpen = true
    }

    /// The schema that holds for every record: only the types of the system fields are known.
    public static let ofAnyRecord = RecordSchema(knownOnly: [:])
}

extension RecordSchema {
    /// Returns whether anything is known about the fields of a comparison.
    func concerns(_ comparison: Comparison) -> Bool {
        !isOpen || concerns(comparison.left) || concerns(comparison.right)
    }

    private func concerns(_ expression: Expression) -> Bool {
        switch expression {
        case .constant, .anyKey: false
        case .variable(let name): elements[name] != nil
        case .path(let path): isKnown(path)
        case .member(let base, _): concerns(base)
        case .list(let elements), .call(_, let elements): elements.contains(where: concerns)
        case .arithmetic(_, let left, let right): concerns(left) || concerns(right)
        case .negative(let inner), .complement(let inner), .cast(let inner, _),
            .assignment(_, let inner), .subquery(let inner, _, _):
            concerns(inner)
        case .conditional(_, let yes, let other): concerns(yes) || concerns(other)
        }
    }

    /// Returns whether the first component of a path is a field about which something is known.
    func isKnown(_ path: RecordPredicate.RecordPath) -> Bool {
        guard case .member(let name)? = path.components.first else { return false }
        return fields[name] != nil || Self.systemFields[name] != nil
    }

    /// Throws if a path goes further into a reference among the system fields than to the record's
    /// name.
    ///
    /// There is nothing else to read.
    func checkSystemPath(_ path: RecordPredicate.RecordPath) throws(PredicateError) {
        guard case .member(let name)? = path.components.first, fields[name] == nil,
            Self.systemFields[name] == .reference,
            case .member(let member)? =
                path.components.dropFirst().first, member != "recordName", member != "recordID"
        else { return }
        throw mismatch(
            "\(name) has no member \(member.prefix(60))", path.span, found: member,
            expected: "\(name).recordName")
    }
}
