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
            guard Self.isClientName(member.name) else {
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
            if let raw, value.outlinesLess(than: raw) { reading.wire[member.name] = raw }
            if value == .list([]), let type, type != Self.unknownList {
                reading.emptyLists[member.name] = type
            }
        }
        return reading
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
            let type = definition?.fields[name]?.type
            return (try value(json, as: type, path: reader.path(of: name)), json, type)
        }
        let field = try JSONReader(json, path: reader.path(of: name))
        try field.allowOnly(["value", "type", "isEncrypted"])
        guard let raw = field.value("value") else { return (.null, nil, nil) }
        let path = field.path(of: "value")
        let type = try type(try field.string("type"), of: raw, name: name, path: path)
        return (try value(raw, as: type, path: path), raw, type)
    }

    private func value(
        _ json: JSONValue, as type: SchemaFieldType?, path: String
    ) throws(JSONContractError) -> FieldValue {
        if json == .null { return .null }
        guard let type else { return try RecordValueReading.inferred(json, path: path) }
        return try RecordValueReading.read(json, as: type, path: path)
    }

    /// The type that the client states, or that the schema knows.
    private func type(
        _ word: String?, of json: JSONValue, name: String, path: String
    ) throws(JSONContractError) -> SchemaFieldType? {
        let known = definition?.fields[name]?.type
        guard let word else { return known }
        guard let read = FieldTypeWord(word) else {
            throw JSONContractError(
                path: path,
                reason: "\"\(word.shortened)\" is no type; allowed are \(FieldTypeWord.rule)")
        }
        guard case .stated(let stated) = read else {
            guard case .array = json else {
                throw JSONContractError(
                    path: path, reason: "Invalid value, expected type \(word).")
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

/// Reads one value by its type.
enum RecordValueReading {
    static func read(
        _ json: JSONValue, as type: SchemaFieldType, path: String
    ) throws(JSONContractError) -> FieldValue {
        guard type.isList else { return try element(json, as: type.element, path: path) }
        guard case .array(let elements) = json else { throw mismatch(type.description, path) }
        var values: [FieldValue] = []
        for (index, json) in elements.enumerated() {
            values.append(try element(json, as: type.element, path: "\(path)[\(index)]"))
        }
        return .list(values)
    }

    private static func mismatch(_ word: String, _ path: String) -> JSONContractError {
        JSONContractError(path: path, reason: "Invalid value, expected type \(word).")
    }

    private static func element(
        _ json: JSONValue, as type: SchemaFieldType.Element, path: String
    ) throws(JSONContractError) -> FieldValue {
        switch type {
        case .any: return try inferred(json, path: path)
        case .reference:
            guard case .object = json else { throw mismatch(type.rawValue, path) }
            return .reference(try reference(json, path: path))
        case .map, .asset:
            return try FieldValue(notation: try object(json, type, path), path: path)
        default:
            guard let value = scalar(json, as: type) else { throw mismatch(type.rawValue, path) }
            return value
        }
    }

    private static func scalar(
        _ json: JSONValue, as type: SchemaFieldType.Element
    ) -> FieldValue? {
        switch (type, json) {
        case (.string, .string(let text)): .string(text)
        case (.int64, .integer(let number)): .integer(number)
        // Some languages write a whole number as 3.0.
        case (.int64, .number(let number)): Int64(exactly: number).map(FieldValue.integer)
        case (.int64, .bool(let flag)): .integer(flag ? 1 : 0)
        case (.int64, .string(let text)): Int64(text).map(FieldValue.integer)
        case (.double, .integer(let number)): .double(Double(number))
        case (.double, .number(let number)): .double(number)
        case (.double, .string(let text)):
            Double(text).flatMap { $0.isFinite ? FieldValue.double($0) : nil }
        case (.timestamp, .integer(let count)): timestamp(count)
        case (.timestamp, .number(let count)): Int64(exactly: count).flatMap(timestamp)
        case (.timestamp, .string(let text)): Int64(text).flatMap(timestamp)
        case (.bytes, .string(let text)): Base64.decode(text).map(FieldValue.bytes)
        case (.location, .object(let place)): location(place)
        case (.boolean, .bool(let flag)): .bool(flag)
        case (.boolean, .integer(let number)): .bool(number != 0)
        case (.uuid, .string(let text)): UUIDBytes(text).map(FieldValue.uuid)
        case (.objectID, .string(let text)):
            Hexadecimal.decode(text).flatMap { $0.count == 12 ? FieldValue.objectID($0) : nil }
        default: nil
        }
    }

    /// Milliseconds of the years that the store can tell.
    private static func timestamp(_ milliseconds: Int64) -> FieldValue? {
        abs(milliseconds / 1000) < 9_000_000_000
            ? .timestamp(Timestamp(milliseconds: milliseconds)) : nil
    }

    /// An object, or its JSON text, as which it is answered to clients that know no objects.
    private static func object(
        _ json: JSONValue, _ type: SchemaFieldType.Element, _ path: String
    ) throws(JSONContractError) -> JSONValue {
        if case .object = json { return json }
        if case .string(let text) = json, type == .map,
            let parsed = try? JSONValue(parsing: text), case .object = parsed
        {
            return parsed
        }
        throw mismatch(type.rawValue, path)
    }

    /// Without a type the JSON decides: an object is a reference, a place or an asset.
    static func inferred(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> FieldValue {
        switch json {
        case .bool(let flag): return .integer(flag ? 1 : 0)
        case .array(let elements):
            var values: [FieldValue] = []
            for (index, element) in elements.enumerated() {
                values.append(try inferred(element, path: "\(path)[\(index)]"))
            }
            return .list(values)
        case .object(let object):
            if object["recordName"] != nil {
                return .reference(try reference(json, path: path))
            }
            if let place = location(object) { return place }
            return try FieldValue(notation: json, path: path)
        default: return try FieldValue(notation: json, path: path)
        }
    }

    private static func reference(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> RecordReference {
        let reader = try JSONReader(json, path: path)
        let name: RecordName = try reader.require(
            "recordName", try reader.identifier("recordName"))
        let zoneID = try reader.value("zoneID").map { zone throws(JSONContractError) in
            try ZoneID(json: zone, path: reader.path(of: "zoneID"))
        }
        return RecordReference(RecordID(recordName: name, zoneID: zoneID ?? .default))
    }

    private static func location(_ object: JSONObject) -> FieldValue? {
        guard let latitude = object["latitude"]?.double, let longitude = object["longitude"]?.double
        else { return nil }
        return Location(latitude: latitude, longitude: longitude).map(FieldValue.location)
    }
}

extension FieldValue {
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
