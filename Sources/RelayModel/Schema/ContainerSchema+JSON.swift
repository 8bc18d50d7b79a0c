extension ContainerSchema {
    /// The schema as JSON: `recordTypes` sorted by name, and `roles`.
    public var json: JSONObject {
        [
            "recordTypes": .array(
                recordTypes.values.sorted { $0.name < $1.name }.map { .object($0.json) }),
            "roles": .array(roles.map { .string($0.rawValue) }),
        ]
    }

    /// Reads what ``json`` writes.
    ///
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(json: JSONValue, path: String = "") throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["recordTypes", "roles"])
        let elements = try reader.require("recordTypes", try reader.array("recordTypes"))
        guard elements.count <= Limits.maximumRecordTypes else {
            throw reader.failure(
                "recordTypes", "at most \(Limits.maximumRecordTypes) record types are allowed")
        }
        var types: [RecordTypeDefinition] = []
        var fields = 0
        for (index, element) in elements.enumerated() {
            let type = try RecordTypeDefinition(
                json: element, path: "\(reader.path(of: "recordTypes"))[\(index)]")
            guard !types.contains(where: { $0.name == type.name }) else {
                throw reader.failure("recordTypes[\(index)]", "\(type.name) is listed twice")
            }
            fields += type.fields.count
            guard fields <= Limits.maximumFieldsPerSchema else {
                throw reader.failure(
                    "recordTypes[\(index)]",
                    "all record types together may have at most \(Limits.maximumFieldsPerSchema) "
                        + "fields"
                )
            }
            types.append(type)
        }
        self.init(types, roles: try Self.roles(reader))
    }

    private static func roles(_ reader: JSONReader) throws(JSONContractError) -> [RoleName] {
        let texts = try reader.strings("roles") ?? []
        guard texts.count <= Limits.maximumRoles else {
            throw reader.failure("roles", "at most \(Limits.maximumRoles) roles are allowed")
        }
        var roles: [RoleName] = []
        for (index, text) in texts.enumerated() {
            guard let role = RoleName(rawValue: text) else {
                throw reader.failure("roles[\(index)]", "not \(RoleName.rule)")
            }
            guard !roles.contains(role) else {
                throw reader.failure("roles[\(index)]", "\(role) is listed twice")
            }
            roles.append(role)
        }
        return roles
    }
}

extension RecordTypeDefinition {
    /// The record type as JSON.
    public var json: JSONObject {
        [
            "name": .string(name.rawValue), "shadow": .bool(isKept),
            "inferred": .bool(isInferred),
            "fields": .array(
                fields.sorted { $0.key < $1.key }.map { .object($0.value.json(name: $0.key)) }),
            "grants": .array(
                grants.map {
                    [
                        "permission": .string($0.permission.rawValue),
                        "role": .string($0.role.rawValue),
                    ]
                }),
        ]
    }

    /// Reads what ``json`` writes.
    ///
    /// Records of the type are kept unless `shadow` is false, and the type has CloudKit's usual
    /// grants unless it names others.
    ///
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["name", "shadow", "inferred", "fields", "grants"])
        self.init(
            try reader.require("name", try reader.identifier("name")),
            isKept: try reader.bool("shadow") ?? true,
            isInferred: try reader.bool("inferred") ?? false)
        let elements = try reader.array("fields") ?? []
        guard elements.count <= Limits.maximumFieldsPerRecord else {
            throw reader.failure(
                "fields", "at most \(Limits.maximumFieldsPerRecord) fields are allowed")
        }
        for (index, element) in elements.enumerated() {
            let field = try JSONReader(element, path: reader.path(of: "fields[\(index)]"))
            let name = try field.require("name", try field.string("name"))
            guard RecordTypeDefinition.isFieldName(name) else {
                throw field.failure("name", "not \(RecordTypeDefinition.fieldNameRule)")
            }
            guard fields[name] == nil else {
                throw field.failure("name", "\"\(name)\" is listed twice")
            }
            fields[name] = try FieldDefinition(field)
        }
        if let grants = try reader.array("grants") {
            self.grants = try Self.grants(grants, path: reader.path(of: "grants"))
        }
    }

    private static func grants(
        _ elements: [JSONValue], path: String
    ) throws(JSONContractError) -> [RecordGrant] {
        var grants: [RecordGrant] = []
        for (index, element) in elements.enumerated() {
            let reader = try JSONReader(element, path: "\(path)[\(index)]")
            try reader.allowOnly(["permission", "role"])
            grants.append(
                RecordGrant(
                    try reader.require("permission", try reader.choice("permission")),
                    to: try reader.require("role", try reader.identifier("role"))))
        }
        return grants
    }

    /// The rule for the names of fields, for error messages.
    public static let fieldNameRule =
        "a field name of 1 to \(Limits.maximumNameBytes) bytes without control characters"

    /// Returns whether `name` can be the name of a field.
    public static func isFieldName(_ name: String) -> Bool {
        name.isPlainName(upTo: Limits.maximumNameBytes)
    }
}

extension FieldDefinition {
    func json(name: String) -> JSONObject {
        var object: JSONObject = ["name": .string(name), "type": .string(type.description)]
        for (word, use) in FieldUses.words {
            object[word.lowercased()] = .bool(uses.contains(use))
        }
        object["indexed"] = uses.contains(.indexed) ? true : nil
        object["encrypted"] = isEncrypted ? true : nil
        return object
    }

    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly([
            "name", "type", "queryable", "sortable", "searchable", "indexed", "encrypted",
        ])
        let word = try reader.require("type", try reader.string("type"))
        guard let type = SchemaFieldType(word: word) else {
            let words = SchemaFieldType.Element.allCases.map(\.rawValue).joined(separator: ", ")
            throw reader.failure(
                "type", "\"\(word)\" is unknown; allowed are \(words), each also with _LIST")
        }
        var uses: FieldUses = []
        for (word, use) in FieldUses.words where try reader.bool(word.lowercased()) == true {
            uses.insert(use)
        }
        if try reader.bool("indexed") == true {
            guard uses.contains(.queryable) else {
                throw reader.failure(
                    "indexed", "is allowed only for a field that is queryable, too")
            }
            uses.insert(.indexed)
        }
        self.init(type, uses: uses, isEncrypted: try reader.bool("encrypted") ?? false)
    }
}
