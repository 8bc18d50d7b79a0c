import RelayModel

/// Parses CloudKit's field dictionaries, `{"value": …, "type": …}` (CloudKit Web Services
/// Reference, "Record Field Dictionary").
///
/// Where `type` is absent or `LIST`, the schema decides, and without one the value.
struct RecordFieldReading {
    /// The definition of the record's type, if it is known.
    let definition: RecordTypeDefinition?
    /// The user whose name as the owner of a zone means the same as no owner.
    let impliedOwner: UserID?

    /// The parsed fields of a record.
    struct Reading {
        var fields: RecordFields = [:]
        /// What the dictionaries say in addition to the values.
        var wire: JSONObject = [:]
        /// The types of empty lists, which the values do not show.
        var emptyLists: [String: SchemaFieldType] = [:]

        /// Returns the targets of references with the action `VALIDATE`; a reference without a zone
        /// points into the record's own zone.
        func validated(in zoneID: ZoneID) -> [RecordID] {
            wire.members.flatMap { name, raw -> [RecordID] in
                let pairs: [(FieldValue, JSONValue)]
                switch (fields[name], raw) {
                case (.list(let values)?, .array(let elements)):
                    pairs = Array(zip(values, elements))
                case (let value?, _): pairs = [(value, raw)]
                case (nil, _): pairs = []
                }
                return pairs.compactMap { value, raw in
                    guard case .reference(let reference) = value, case .object(let object) = raw,
                        object["action"] == "VALIDATE"
                    else { return nil }
                    let id = reference.recordID
                    return object["zoneID"] == nil
                        ? RecordID(recordName: id.recordName, zoneID: zoneID) : id
                }
            }
        }
    }

    /// Parses all fields.
    ///
    /// - Throws: `JSONContractError` for the first field that does not fit.
    func read(_ reader: JSONReader) throws(JSONContractError) -> Reading {
        var reading = Reading()
        guard reader.object.members.count <= Limits.maximumFieldsPerRecord else {
            throw JSONContractError(
                path: reader.path,
                reason: "a record may have at most \(Limits.maximumFieldsPerRecord) fields")
        }
        for member in reader.object.members {
            guard Self.isClientName(member.name) || isSources(member.name) else {
                throw reader.failure(
                    member.name.shortened,
                    "is not a field name, which is a letter followed by letters, digits and "
                        + "underscores")
            }
            guard !SystemField.isReserved(member.name) else {
                throw reader.failure(
                    member.name,
                    "is reserved for a system field; choose another name")
            }
            let (stated, raw, type) = try read(member.value, name: member.name, in: reader)
            try stated.checkDepth(path: reader.path(of: member.name))
            let value = stated.implying(impliedOwner)
            reading.fields[member.name] = value
            if let raw {
                let form = value.withoutDefaultZones(raw)
                if value.outlinesLess(than: form) { reading.wire[member.name] = form }
            }
            if value == .list([]), let type, type != Self.unknownList {
                reading.emptyLists[member.name] = type
            }
        }
        return reading
    }

    /// Returns whether a source has named a known field, such as MongoDB's `_id`, which a client
    /// sends when it saves a record back.
    private func isSources(_ name: String) -> Bool {
        !name.utf8.starts(with: "___".utf8) && definition?.fields[name] != nil
    }

    /// Returns whether a name follows CloudKit's rule for fields and record types.
    static func isClientName(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= Limits.maximumNameBytes else {
            return false
        }
        func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A }
        return isLetter(first)
            && name.utf8.allSatisfy { isLetter($0) || 0x30...0x39 ~= $0 || $0 == 0x5F }
    }

    /// The answered type of an empty list whose type is unknown; sent back, it says nothing.
    private static let unknownList = SchemaFieldType(.string, isList: true)

    /// Parses one field, as a dictionary or a bare value; returns its type too, if it is known.
    private func read(
        _ json: JSONValue, name: String, in reader: JSONReader
    ) throws(JSONContractError) -> (FieldValue, raw: JSONValue?, SchemaFieldType?) {
        guard case .object(let object) = json, object["recordName"] == nil,
            object["latitude"] == nil
        else {
            let (known, path) = (definition?.fields[name]?.type, reader.path(of: name))
            let bare = try value(json, as: known, path: path)
            return (bare, try WrittenForm.of(bare, json, path: path), known)
        }
        let field = try JSONReader(json, path: reader.path(of: name))
        try field.allowOnly(["value", "type", "isEncrypted"])
        guard let raw = field.value("value") else { return (.null, nil, nil) }
        let path = field.path(of: "value")
        let type = try type(try field.string("type"), of: raw, name: name, in: field)
        let read = try value(raw, as: type, path: path)
        return (read, try WrittenForm.of(read, raw, path: path), type)
    }

    private func value(
        _ json: JSONValue, as type: SchemaFieldType?, path: String
    ) throws(JSONContractError) -> FieldValue {
        if json == .null { return .null }
        guard let type else { return try FieldDictionary(.kept).inferred(json, path: path) }
        return try FieldDictionary(.kept).value(json, as: type, path: path)
    }

    /// Returns the type that the client states or that the schema knows.
    private func type(
        _ word: String?, of json: JSONValue, name: String, in field: JSONReader
    ) throws(JSONContractError) -> SchemaFieldType? {
        let known = definition?.fields[name]?.type
        guard let word else { return known }
        guard let read = FieldTypeWord(word) else {
            throw field.failure(
                "type", "\"\(word.shortened)\" is not a type; allowed are \(FieldTypeWord.rule)")
        }
        let path = field.path(of: "value")
        guard case .stated(let stated) = read else {
            guard case .array = json else {
                throw FieldDictionary.mismatch(word, path)
            }
            return known
        }
        // A type that CloudKit has no word for is answered as a text or number, and comes back so.
        if let known, !known.element.isOfCloudKit { return known }
        // An empty list fits every type of list.
        if let known, known.isList, stated.isList, json == [] { return known }
        if let known, known != stated {
            throw JSONContractError(
                path: path,
                reason: "invalid attempt to set value type \(stated) for field '\(name)' for type "
                    + "'\(definition?.name.rawValue ?? "")', defined to be: \(known)")
        }
        return stated
    }
}

extension FieldValue {
    /// Removes zones that are implied from what a client wrote for this value: the default zone of
    /// references with the action `NONE`.
    ///
    /// Answers add the zone again (`RecordJSON`), and clients send it back with every record.
    /// Storing it would take several times the space for a list of thousands.
    func withoutDefaultZones(_ raw: JSONValue) -> JSONValue {
        switch (self, raw) {
        case (.list(let values), .array(let elements)) where values.count == elements.count:
            return .array(zip(values, elements).map { $0.withoutDefaultZones($1) })
        case (.reference(let reference), .object(var object))
        where reference.recordID.zoneID == .default && object["action"] == "NONE":
            object["zoneID"] = nil
            return .object(object)
        default: return raw
        }
    }

    /// Returns whether the client's form says more than this value keeps: the action of a
    /// reference, the altitude of a location, the download URL of an asset.
    func outlinesLess(than raw: JSONValue) -> Bool {
        switch self {
        case .reference, .location, .map: answered(.asNumbers) != raw
        case .list(let values):
            values.contains {
                switch $0 {
                case .reference, .location, .map: true
                default: false
                }
            } && answered(.asNumbers) != raw
        default: false
        }
    }
}
