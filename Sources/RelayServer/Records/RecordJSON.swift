import RelayModel
import Storage

/// How an answer shows records: which fields, and how numbers.
struct RecordJSON: Sendable {
    /// How numbers are written.
    enum Numbers: Sendable, Hashable {
        case asNumbers
        /// For clients whose numbers are doubles.
        case asStrings
    }

    /// The fields that are shown; `nil` shows all.
    var desiredKeys: Set<String>?
    /// How numbers are written.
    var numbers = Numbers.asNumbers

    /// Reads `desiredKeys` and `numbersAsStrings` of a request.
    ///
    /// - Throws: `JSONContractError` if they do not fit.
    init(_ body: JSONReader) throws {
        desiredKeys = try body.strings("desiredKeys").map { Set($0) }
        numbers = try body.bool("numbersAsStrings") == true ? .asStrings : .asNumbers
    }

    /// Shows `desiredKeys` in the place of the request's own, if they are given.
    func showing(_ keys: [String]?) -> RecordJSON {
        var shown = self
        if let keys { shown.desiredKeys = Set(keys) }
        return shown
    }

    /// CloudKit's record dictionary.
    func record(_ record: ShadowRecord, for caller: RecordCaller) -> JSONObject {
        guard !record.isDeleted else {
            return [
                "recordName": .string(record.recordID.recordName.rawValue),
                "recordType": .string(record.recordType.rawValue), "fields": [:],
                "pluginFields": [:], "recordChangeTag": .string(record.changeTag),
                "deleted": true, "zoneID": caller.json(record.recordID.zoneID),
            ]
        }
        return [
            "recordName": .string(record.recordID.recordName.rawValue),
            "recordType": .string(record.recordType.rawValue),
            "fields": .object(fields(record, caller.schema.recordTypes[record.recordType])),
            "pluginFields": [:],
            "recordChangeTag": .string(record.changeTag),
            "created": Self.stamp(record.created), "modified": Self.stamp(record.modified),
            "deleted": false, "zoneID": caller.json(record.recordID.zoneID),
        ]
    }

    private func fields(
        _ record: ShadowRecord, _ definition: RecordTypeDefinition?
    ) -> JSONObject {
        var object = JSONObject()
        for (name, value) in record.fields.sorted(by: { $0.key < $1.key })
        where desiredKeys?.contains(name) != false {
            let form = AnsweredField(
                value, wire: record.wire[name], known: definition?.fields[name]?.type,
                numbers: numbers)
            object[name] = ["value": form.value, "type": .string(form.type)]
        }
        return object
    }

    /// All three members are always there, because CloudKit's always are and clients' types demand
    /// it (OpenCloudKit and others drop a stamp without one).
    private static func stamp(_ stamp: RecordStamp) -> JSONValue {
        [
            "timestamp": .integer(stamp.at.milliseconds),
            "userRecordName": .string(stamp.userID?.rawValue ?? UnnamedStamp.user),
            "deviceID": .string(stamp.deviceID?.rawValue ?? UnnamedStamp.device),
        ]
    }

    /// The value as CloudKit writes it; what CloudKit does not have becomes a text.
    static func value(_ value: FieldValue, numbers: Numbers) -> JSONValue {
        func number(_ json: JSONValue) -> JSONValue {
            numbers == .asStrings ? .string(json.text) : json
        }
        switch value {
        case .null: return .null
        case .bool(let flag): return number(.integer(flag ? 1 : 0))
        case .integer(let integer): return number(.integer(integer))
        case .double(let double): return number(.number(double))
        case .string(let text): return .string(text)
        case .timestamp(let moment): return number(.integer(moment.milliseconds))
        case .bytes(let bytes): return .string(Base64.encode(bytes))
        case .reference(let reference): return Self.reference(reference.recordID)
        case .location(let place):
            return [
                "latitude": .number(place.latitude), "longitude": .number(place.longitude),
            ]
        case .uuid(let uuid): return .string(uuid.description)
        case .objectID(let bytes): return .string(Hexadecimal.encode(bytes))
        case .list(let values): return .array(values.map { Self.value($0, numbers: numbers) })
        case .set(let values):
            return .array(
                values.map { Self.value($0, numbers: numbers) }.sorted { $0.text < $1.text })
        case .map(let members):
            let json = JSONValue.object(FieldValue.notation(fields: members))
            return members["fileChecksum"] == nil ? .string(json.text) : json
        }
    }

    private static func reference(_ recordID: RecordID) -> JSONValue {
        var object: JSONObject = ["recordName": .string(recordID.recordName.rawValue)]
        if recordID.zoneID != .default { object["zoneID"] = recordID.zoneID.json }
        object["action"] = "NONE"
        return .object(object)
    }
}

/// What stands in a stamp for somebody whom nobody named.
enum UnnamedStamp {
    /// No user's record name: a database posted the change, and did not say on whose behalf.
    static let user = "_" + String(repeating: "0", count: 32)
    /// The device of changes that came by a web service; CloudKit's own answers have it too.
    static let device = "2"
}
