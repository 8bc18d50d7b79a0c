import RelayModel

/// Parses the tokens of a schema's text.
struct SchemaTextParser {
    private var rest: ArraySlice<SchemaToken>
    private let lastLine: Int

    init(_ tokens: [SchemaToken]) {
        rest = tokens[...]
        lastLine = tokens.last?.line ?? 1
    }

    /// Parses `DEFINE SCHEMA { CREATE ROLE name ;
    ///  RECORD TYPE name ( … ) ; }`.
    mutating func schema() throws(SchemaTextError) -> ContainerSchema {
        try expect("DEFINE", "SCHEMA")
        var types: [RecordTypeDefinition] = []
        var fields = 0
        var roles: [RoleName] = []
        while let token = rest.first {
            if take("CREATE") {
                try expect("ROLE")
                let role = try identifier("the name of a role", as: RoleName.self)
                guard !roles.contains(role) else {
                    throw SchemaTextError(line: token.line, reason: "\(role) is defined twice")
                }
                roles.append(role)
            } else if take("RECORD") {
                try expect("TYPE")
                let type = try recordType()
                guard !types.contains(where: { $0.name == type.name }) else {
                    throw SchemaTextError(
                        line: token.line, reason: "\(type.name) is defined twice")
                }
                types.append(type)
                fields += type.fields.count
            } else {
                throw unexpected("RECORD TYPE or CREATE ROLE")
            }
            try expect(";")
            guard types.count <= Limits.maximumRecordTypes else {
                throw SchemaTextError(
                    line: token.line,
                    reason: "more than \(Limits.maximumRecordTypes) record types")
            }
            guard fields <= Limits.maximumFieldsPerSchema else {
                throw SchemaTextError(
                    line: token.line, reason: "more than \(Limits.maximumFieldsPerSchema) fields")
            }
            guard roles.count <= Limits.maximumRoles else {
                throw SchemaTextError(
                    line: token.line, reason: "more than \(Limits.maximumRoles) roles")
            }
        }
        return ContainerSchema(types, roles: roles)
    }

    private mutating func recordType() throws(SchemaTextError) -> RecordTypeDefinition {
        let name = try identifier("the name of a record type", as: RecordType.self)
        var type = RecordTypeDefinition(name, grants: [])
        try expect("(")
        while !take(")") {
            try member(of: &type)
            guard take(",") else {
                try expect(")")
                break
            }
        }
        return type
    }

    private mutating func member(
        of type: inout RecordTypeDefinition
    ) throws(SchemaTextError) {
        // GRANT in quotation marks is the name of a field.
        if rest.first?.kind == .word, take("GRANT") {
            try grant(to: &type)
            return
        }
        let line = rest.first?.line ?? lastLine
        let name = try name("the name of a field, or GRANT")
        guard RecordTypeDefinition.isFieldName(name), type.fields[name] == nil else {
            throw SchemaTextError(
                line: line,
                reason: "\"\(name)\" is defined twice, or is not "
                    + RecordTypeDefinition.fieldNameRule)
        }
        guard type.fields.count < Limits.maximumFieldsPerRecord else {
            throw SchemaTextError(
                line: line, reason: "more than \(Limits.maximumFieldsPerRecord) fields")
        }
        type.fields[name] = try field()
    }

    /// Parses `GRANT READ, WRITE TO role`.
    private mutating func grant(to type: inout RecordTypeDefinition) throws(SchemaTextError) {
        var permissions: [RecordGrant.Permission] = []
        repeat {
            let words = RecordGrant.Permission.allCases
            guard let permission = words.first(where: { isNext($0.rawValue) }) else {
                throw unexpected("READ, CREATE or WRITE")
            }
            rest.removeFirst()
            permissions.append(permission)
        } while take(",")
        try expect("TO")
        let role = try identifier("the name of a role", as: RoleName.self)
        type.grants += permissions.map { RecordGrant($0, to: role) }
    }

    private mutating func field() throws(SchemaTextError) -> FieldDefinition {
        var isEncrypted = take("ENCRYPTED")
        let isList = take("LIST")
        if isList {
            try expect("<")
            if take("ENCRYPTED") { isEncrypted = true }
        }
        let type = try element()
        if isList { try expect(">") }
        var uses: FieldUses = []
        while let word = FieldUses.words.first(where: { isNext($0.word) }) {
            rest.removeFirst()
            uses.insert(word.use)
        }
        return FieldDefinition(
            SchemaFieldType(type, isList: isList), uses: uses, isEncrypted: isEncrypted)
    }

    /// Parses one of CloudKit's types; `NUMBER [PREFERRED AS INT64]` is a number of either kind.
    private mutating func element() throws(SchemaTextError) -> SchemaFieldType.Element {
        let known = SchemaFieldType.Element.allCases.filter(\.isOfCloudKit)
        if take("NUMBER") {
            guard take("PREFERRED") else { return .double }
            try expect("AS")
            if take("INT64") { return .int64 }
            try expect("DOUBLE")
            return .double
        }
        guard let type = known.first(where: { isNext($0.rawValue) }) else {
            throw unexpected("one of \(known.map(\.rawValue).joined(separator: ", ")), LIST<…>")
        }
        rest.removeFirst()
        return type
    }

    // MARK: Tokens

    private func isNext(_ word: String) -> Bool {
        guard let token = rest.first, token.kind != .quoted else { return false }
        return token.text.uppercased() == word
    }

    private mutating func take(_ word: String) -> Bool {
        guard isNext(word) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func expect(_ words: String...) throws(SchemaTextError) {
        for word in words where !take(word) { throw unexpected(word) }
    }

    private mutating func name(_ what: String) throws(SchemaTextError) -> String {
        guard let token = rest.first, token.kind != .sign, !token.text.isEmpty else {
            throw unexpected(what)
        }
        rest.removeFirst()
        return token.text
    }

    private mutating func identifier<Identifier: ValidatedIdentifier>(
        _ what: String, as type: Identifier.Type
    ) throws(SchemaTextError) -> Identifier {
        let line = rest.first?.line ?? lastLine
        let text = try name(what)
        guard let identifier = Identifier(rawValue: text) else {
            throw SchemaTextError(
                line: line, reason: "\"\(text.shortened)\" is not \(Identifier.rule)")
        }
        return identifier
    }

    private func unexpected(_ what: String) -> SchemaTextError {
        guard let token = rest.first else {
            return SchemaTextError(line: lastLine, reason: "\(what) is expected, but the text ends")
        }
        return SchemaTextError(
            line: token.line, reason: "\(what) is expected, found \"\(token.text.shortened)\"")
    }
}
