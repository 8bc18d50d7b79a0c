import RelayModel
import Storage

/// How an answer shows records: which fields, and how numbers.
struct RecordJSON: Sendable {
    /// The fields that are shown; `nil` shows all.
    var desiredKeys: Set<String>?
    /// How numbers are written.
    var numbers = AnsweredNumbers.asNumbers

    /// Whether a field is its bare value, without the type that says how to read it.
    var isPlain = false

    /// Shows all fields.
    init(numbers: AnsweredNumbers) {
        self.numbers = numbers
    }

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
        // Each name is there once: to look for it among those before would take the square of them.
        var object = JSONObject()
        for (name, value) in record.fields.sorted(by: { $0.key < $1.key })
        where desiredKeys?.contains(name) != false {
            guard !isPlain else {
                let written = record.wire[name] ?? value.answered(numbers)
                object.members.append((name: name, value: written))
                continue
            }
            let form = AnsweredField(
                value, wire: record.wire[name], known: definition?.fields[name]?.type,
                numbers: numbers)
            let answered: JSONValue = ["value": form.value, "type": .string(form.type)]
            object.members.append((name: name, value: answered))
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
}

/// What stands in a stamp for somebody whom nobody named.
enum UnnamedStamp {
    /// No user's record name: a database posted the change, and did not say on whose behalf.
    static let user = "_" + String(repeating: "0", count: 32)
    /// The device of changes that came by a web service; CloudKit's own answers have it too.
    static let device = "2"
}
