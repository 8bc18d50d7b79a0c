public import RelayModel

extension RecordSchema {
    /// Reads a schema: an object of fields, each a type name or `{"type", "queryable", "indexed",
    /// "fields"}`.
    ///
    /// The types are CloudKit's, with `BOOLEAN`, `UUID`, `OBJECTID`, `MAP` (an object, whose
    /// `fields` may be given) and `ANY`; each may end in `_LIST`.
    ///
    /// - Throws: ``JSONContractError`` at the first field that cannot be read.
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
            throw JSONContractError(path: path, reason: "nested too deep")
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
        switch name {
        case "STRING": return .string
        case "INT64": return .integer
        case "DOUBLE": return .double
        case "BOOLEAN": return .boolean
        case "TIMESTAMP": return .timestamp
        case "BYTES": return .bytes
        case "REFERENCE": return .reference
        case "LOCATION": return .location
        case "UUID": return .uuid
        case "OBJECTID": return .objectID
        case "MAP": return .map(members)
        case "ANY": return .mixed
        default:
            throw JSONContractError(
                path: path,
                reason: "\"\(name)\" is unknown; allowed are STRING, INT64, DOUBLE, BOOLEAN,"
                    + " TIMESTAMP, BYTES, REFERENCE, LOCATION, UUID, OBJECTID, MAP, ANY,"
                    + " each also with _LIST")
        }
    }
}
