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
                isAllTyped || type(of: object) != nil
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

    private static func type(of object: JSONObject) -> CloudKitType? {
        guard case .string(let name)? = object["type"] else { return nil }
        return CloudKitType(rawValue: name.isList ? String(name.dropLast(5)) : name)
    }

    private static func value(
        _ json: JSONValue, typeName: JSONValue?, path: String
    ) throws(JSONContractError) -> FieldValue {
        if json == .null { return .null }
        guard let typeName, typeName != .null else { return try inferred(json, path: path) }
        guard case .string(let name) = typeName,
            let type = CloudKitType(rawValue: name.isList ? String(name.dropLast(5)) : name)
        else {
            throw JSONContractError(
                path: "\(path).type",
                reason: "must be one of \(CloudKitType.words), or one of these with _LIST")
        }
        guard name.isList else { return try type.read(json, path: "\(path).value") }
        guard case .array(let elements) = json else {
            throw JSONContractError(
                path: "\(path).value", reason: "an array is expected, found \(json.kind)")
        }
        var values: [FieldValue] = []
        for (index, element) in elements.enumerated() {
            values.append(try type.read(element, path: "\(path).value[\(index)]"))
        }
        return .list(values)
    }

    private static func inferred(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> FieldValue {
        if case .object(let object) = json {
            if object["recordName"] != nil {
                return try CloudKitType.reference.read(json, path: "\(path).value")
            }
            if object["latitude"] != nil {
                return try CloudKitType.location.read(json, path: "\(path).value")
            }
        }
        return try FieldValue(notation: json, path: "\(path).value")
    }
}

extension String {
    var isList: Bool { hasSuffix("_LIST") }
}

/// CloudKit's words for the kinds of fields.
private enum CloudKitType: String, CaseIterable {
    case string = "STRING"
    case int64 = "INT64"
    case double = "DOUBLE"
    case timestamp = "TIMESTAMP"
    case bytes = "BYTES"
    case reference = "REFERENCE"
    case location = "LOCATION"
    case asset = "ASSET"
    case assetID = "ASSETID"

    static var words: String { allCases.map(\.rawValue).joined(separator: ", ") }

    func read(_ json: JSONValue, path: String) throws(JSONContractError) -> FieldValue {
        switch (self, json) {
        case (.string, .string(let text)): return .string(text)
        case (.int64, .integer(let number)): return .integer(number)
        // CloudKit has no boolean; clients of other databases do.
        case (.int64, .bool(let flag)): return .bool(flag)
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
        case (.asset, .object), (.assetID, .object): return FieldValue(plain: json)
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
        let zoneID = try reader.reader("zoneID").map(BelfryReading.zoneID)
        return RecordReference(RecordID(recordName: name, zoneID: zoneID ?? .default))
    }
}
