import RelayModel

/// Reads CloudKit's field dictionaries, `{"value": …, "type": …}` each (CloudKit Web Services
/// Reference, "Record Field Dictionary").
///
/// Where `type` is absent, or `LIST`, the schema decides, and without one the value.
struct RecordFieldReading {
    /// The record's type, if it is known.
    let definition: RecordTypeDefinition?
    /// Whose name as the owner of a zone is the same as none.
    let impliedOwner: UserID?

    /// What was read of a record's fields.
    struct Reading {
        var fields: RecordFields = [:]
        /// What the dictionaries say beyond the values.
        var wire: JSONObject = [:]
        /// The types of empty lists whose values do not show them.
        var emptyLists: [String: SchemaFieldType] = [:]

        /// The records to which references with the action `VALIDATE` lead; one without a zone
        /// leads into the record's own.
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

    /// Reads every field.
    ///
    /// - Throws: `JSONContractError` at the first field that does not fit.
    func read(_ reader: JSONReader) throws(JSONContractError) -> Reading {
        var reading = Reading()
        guard reader.object.members.count <= Limits.maximumFieldsPerRecord else {
            throw JSONContractError(
                path: reader.path,
                reason: "a record has at most \(Limits.maximumFieldsPerRecord) fields")
        }
        for member in reader.object.members {
            guard Self.isClientName(member.name) || isSources(member.name) else {
                throw reader.failure(
                    member.name.shortened,
                    "not a field name: a letter, then letters, digits and underscores")
            }
            guard !SystemField.isReserved(member.name) else {
                throw reader.failure(
                    member.name,
                    "is what the relay itself knows of a record; choose another name")
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

    /// Whether a source named a field that is known, as MongoDB's `_id`: a client that saves a
    /// record back has it in it.
    private func isSources(_ name: String) -> Bool {
        !name.utf8.starts(with: "___".utf8) && definition?.fields[name] != nil
    }

    /// CloudKit's rule for the names of fields and record types.
    static func isClientName(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= Limits.maximumNameBytes else {
            return false
        }
        func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A }
        return isLetter(first)
            && name.utf8.allSatisfy { isLetter($0) || 0x30...0x39 ~= $0 || $0 == 0x5F }
    }

    /// What an empty list is answered as whose type nobody knows: sent back, it says nothing.
    private static let unknownList = SchemaFieldType(.string, isList: true)

    /// Reads one field: its dictionary, or the bare value; and its type, as far as that is known.
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

    /// The type that the client states, or that the schema knows.
    private func type(
        _ word: String?, of json: JSONValue, name: String, in field: JSONReader
    ) throws(JSONContractError) -> SchemaFieldType? {
        let known = definition?.fields[name]?.type
        guard let word else { return known }
        guard let read = FieldTypeWord(word) else {
            throw field.failure(
                "type", "\"\(word.shortened)\" is no type; allowed are \(FieldTypeWord.rule)")
        }
        let path = field.path(of: "value")
        guard case .stated(let stated) = read else {
            guard case .array = json else {
                throw FieldDictionary.mismatch(word, path)
            }
            return known
        }
        // What CloudKit has no word for is answered as a text or a number, and comes back so.
        if let known, !known.element.isOfCloudKit { return known }
        // An empty list is one of every type.
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
    /// What a client wrote of it, without the zone of a reference that means the default one
    /// anyhow.
    ///
    /// It is answered all the same (`RecordJSON`), and comes back with every record that was read:
    /// a list of thousands would take several times the room.
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

    /// Whether CloudKit's value says more than this one keeps: the action of a reference, the
    /// altitude of a place, the download URL of an asset.
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
