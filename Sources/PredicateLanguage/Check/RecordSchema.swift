/// What is known of the fields of one record type.
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

    /// Whether records may have other fields, of which nothing is known.
    let isOpen: Bool

    /// What the elements are that the variables of the subqueries around stand for.
    var elements: [String: FieldType] = [:]

    /// Creates a schema of all fields that there are.
    public init(_ fields: [String: Field]) {
        self.fields = fields
        isOpen = false
    }

    /// Creates a schema of fields beside which there may be others, of which nothing is known.
    ///
    /// A predicate is checked only where it asks for what every record has, or for one of these.
    public init(knownOnly fields: [String: Field]) {
        self.fields = fields
        isOpen = true
    }

    /// What holds of every record: the system fields have their kinds.
    public static let ofAnyRecord = RecordSchema(knownOnly: [:])
}

extension RecordSchema {
    /// Whether anything is known of the fields of a comparison.
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

    /// Whether the first step of a path leads to a field of which something is known.
    func isKnown(_ path: RecordPredicate.RecordPath) -> Bool {
        guard case .member(let name)? = path.components.first else { return false }
        return fields[name] != nil || Self.systemFields[name] != nil
    }

    /// Refuses to go further into a system field than to the name of a reference: there is nothing.
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
