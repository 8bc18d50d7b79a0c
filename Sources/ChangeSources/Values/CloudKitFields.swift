import RelayModel

/// The fields of a record in the relay's notation, or in CloudKit's typed form
/// `{"value": …, "type": …}` (CloudKit Web Services Reference, "Record Field Dictionary").
enum CloudKitFields {
    /// Reads every field for itself: one with a `value` and a `type` of CloudKit's is typed.
    ///
    /// Where every field is an object with a `value` and at most a `type`, all are CloudKit's, and
    /// an absent type is inferred from the value.
    static func read(_ reader: JSONReader) throws(JSONContractError) -> RecordFields {
        let members = reader.object.members
        let isAllTyped = !members.isEmpty && members.allSatisfy { isTyped($0.value) }
        var fields: RecordFields = [:]
        fields.reserveCapacity(members.count)
        for member in members {
            let path = reader.path(of: member.name)
            if case .object(let object) = member.value, isTyped(member.value),
                isAllTyped || word(object["type"], of: object["value"]) != nil
            {
                fields[member.name] = try value(
                    object["value"] ?? .null, typeName: object["type"], path: path)
            } else {
                fields[member.name] = try FieldValue(notation: member.value, path: path)
            }
        }
        return fields
    }

    private static func isTyped(_ json: JSONValue) -> Bool {
        guard case .object(let object) = json, object["value"] != nil else { return false }
        return object.members.count == (object["type"] == nil ? 1 : 2)
    }

    /// One of CloudKit's words, which fits the value; a dictionary of the application's own may
    /// have a `type` of its own.
    private static func word(_ type: JSONValue?, of value: JSONValue?) -> FieldTypeWord? {
        guard case .string(let name)? = type, let word = FieldTypeWord(name) else { return nil }
        switch word {
        case .someList: guard case .array? = value else { return nil }
        case .stated(let type): guard CloudKitType(type.element) != nil else { return nil }
        }
        return word
    }

    private static func value(
        _ json: JSONValue, typeName: JSONValue?, path: String
    ) throws(JSONContractError) -> FieldValue {
        if json == .null { return .null }
        guard let typeName, typeName != .null else { return try inferred(json, path: path) }
        guard let word = word(typeName, of: json) else {
            throw JSONContractError(
                path: "\(path).type", reason: "must be one of \(FieldTypeWord.rule)")
        }
        guard case .stated(let stated) = word, let type = CloudKitType(stated.element) else {
            guard case .array(let elements) = json else { return try inferred(json, path: path) }
            return .list(
                try list(elements, path) { json, path throws(JSONContractError) in
                    try inferred(json, at: path)
                })
        }
        guard stated.isList else { return try type.read(json, path: "\(path).value") }
        guard case .array(let elements) = json else {
            throw JSONContractError(
                path: "\(path).value", reason: "an array is expected, found \(json.kind)")
        }
        return .list(try list(elements, path, type.read))
    }

    private static func list(
        _ elements: [JSONValue], _ path: String,
        _ read: (JSONValue, String) throws(JSONContractError) -> FieldValue
    ) throws(JSONContractError) -> [FieldValue] {
        var values: [FieldValue] = []
        for (index, element) in elements.enumerated() {
            values.append(try read(element, "\(path).value[\(index)]"))
        }
        return values
    }

    private static func inferred(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> FieldValue {
        try inferred(json, at: "\(path).value")
    }

    private static func inferred(
        _ json: JSONValue, at place: String
    ) throws(JSONContractError) -> FieldValue {
        if case .bool(let flag) = json { return .integer(flag ? 1 : 0) }
        if case .object(let object) = json {
            if object["recordName"] != nil {
                return try CloudKitType.reference.read(json, path: place)
            }
            if object["latitude"] != nil {
                return try CloudKitType.location.read(json, path: place)
            }
        }
        return try FieldValue(notation: json, path: place)
    }
}

/// CloudKit's words for the kinds of fields.
private enum CloudKitType: String {
    case string = "STRING"
    case int64 = "INT64"
    case double = "DOUBLE"
    case timestamp = "TIMESTAMP"
    case bytes = "BYTES"
    case reference = "REFERENCE"
    case location = "LOCATION"
    case asset = "ASSET"

    init?(_ element: SchemaFieldType.Element) {
        self.init(rawValue: element.rawValue)
    }

    func read(_ json: JSONValue, path: String) throws(JSONContractError) -> FieldValue {
        switch (self, json) {
        case (.string, .string(let text)): return .string(text)
        case (.int64, .integer(let number)): return .integer(number)
        // CloudKit has no boolean: one that is written as INT64 is 0 or 1, here as everywhere.
        case (.int64, .bool(let flag)): return .integer(flag ? 1 : 0)
        case (.double, .integer(let number)): return .double(Double(number))
        case (.double, .number(let number)): return .double(number)
        case (.timestamp, .integer(let count)):
            if let moment = Timestamp(milliseconds: count).plausible { return .timestamp(moment) }
        case (.bytes, .string(let text)):
            if let bytes = Base64.decode(text) { return .bytes(bytes) }
        case (.reference, .object):
            return .reference(try Self.reference(try JSONReader(json, path: path)))
        case (.location, .object):
            if let place = LocationText.location(FieldValue(plain: json)) {
                return .location(place)
            }
        case (.asset, .object): return FieldValue(plain: json)
        default: break
        }
        throw JSONContractError(
            path: path, reason: "\(json.kind) that does not fit the type \(rawValue)")
    }

    private static func reference(
        _ reader: JSONReader
    ) throws(JSONContractError) -> RecordReference {
        try reader.allowOnly(["recordName", "zoneID", "action"])
        let name: RecordName = try reader.require("recordName", try reader.identifier("recordName"))
        let zoneID = try BelfryReading.zoneID(of: reader)
        return RecordReference(RecordID(recordName: name, zoneID: zoneID ?? .default))
    }
}
