public import RelayModel

extension RecordSchema {
    /// Creates a schema from its JSON form: an object of fields, each of which is a type name or
    /// `{"type", "queryable", "indexed", "fields"}`.
    ///
    /// The types are CloudKit's, and also `BOOLEAN`, `UUID`, `OBJECTID`, `MAP` (an object, whose
    /// members `fields` may define) and `ANY`. Each may end in `_LIST`.
    ///
    /// - Throws: `JSONContractError` at the first field that cannot be read.
    public init(json: JSONValue, path: String = "schema") throws(JSONContractError) {
        self.init(try Self.fields(json, path: path, depth: 0))
    }

    private static func fields(
        _ json: JSONValue, path: String, depth: Int
    ) throws(JSONContractError) -> [String: Field] {
        let reader = try JSONReader(json, path: path)
        guard reader.object.members.count <= Limits.maximumFieldsPerRecord else {
            throw JSONContractError(
                path: path, reason: "more than \(Limits.maximumFieldsPerRecord) fields")
        }
        guard depth < Limits.maximumJSONDepth else {
            throw JSONContractError(path: path, reason: "nested too deeply")
        }
        var fields: [String: Field] = [:]
        for member in reader.object.members {
            fields[member.name] = try field(
                member.value, path: reader.path(of: member.name), depth: depth)
        }
        return fields
    }

    private static func field(
        _ json: JSONValue, path: String, depth: Int
    ) throws(JSONContractError) -> Field {
        if case .string(let name) = json { return Field(try type(name, nil, path: path)) }
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["type", "queryable", "indexed", "fields"])
        let name = try reader.require("type", try reader.string("type"))
        var members: [String: Field]?
        if let inner = reader.value("fields") {
            members = try fields(inner, path: reader.path(of: "fields"), depth: depth + 1)
        }
        return Field(
            try type(name, members, path: reader.path(of: "type")),
            isQueryable: try reader.bool("queryable") ?? true,
            isIndexedQueryable: try reader.bool("indexed") ?? false)
    }

    private static func type(
        _ name: String, _ members: [String: Field]?, path: String
    ) throws(JSONContractError) -> FieldType {
        let suffix = "_LIST"
        if name.hasSuffix(suffix) {
            return .list(try type(String(name.dropLast(suffix.count)), members, path: path))
        }
        guard let element = SchemaFieldType.Element(rawValue: name), element != .asset else {
            let words = SchemaFieldType.Element.allCases.filter { $0 != .asset }
                .map(\.rawValue).joined(separator: ", ")
            throw JSONContractError(
                path: path,
                reason: "\"\(name)\" is unknown; allowed are \(words), each also with _LIST")
        }
        return FieldType(element, members: members)
    }
}

extension RecordSchema.FieldType {
    /// Creates the type that a condition sees for a field of type `type`.
    public init(_ type: SchemaFieldType) {
        let element = Self(type.element, members: nil)
        self = type.isList ? .list(element) : element
    }

    init(_ element: SchemaFieldType.Element, members: [String: RecordSchema.Field]?) {
        self =
            switch element {
            case .string: .string
            case .int64: .integer
            case .double: .double
            case .timestamp: .timestamp
            case .bytes: .bytes
            case .reference: .reference
            case .location: .location
            case .boolean: .boolean
            case .uuid: .uuid
            case .objectID: .objectID
            case .map, .asset: .map(members)
            case .any: .mixed
            }
    }
}
