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
    /// Whether the record's version is shown.
    var showsChangeTag = true

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
        var object = JSONObject()
        write(record, for: caller, to: &object)
        return object
    }

    /// Appends the members of CloudKit's record dictionary to an empty object.
    func write<Object: JSONObjectBuilder>(
        _ record: ShadowRecord, for caller: RecordCaller, to object: inout Object
    ) {
        object.append("recordName", text: record.recordID.recordName.rawValue)
        object.append("recordType", text: record.recordType.rawValue)
        object.append("fields") { fields in
            if !record.isDeleted { write(fieldsOf: record, for: caller, to: &fields) }
        }
        object.append("pluginFields") { _ in }
        if showsChangeTag { object.append("recordChangeTag", text: record.changeTag) }
        if !record.isDeleted {
            object.append("created") { Self.write(record.created, to: &$0) }
            object.append("modified") { Self.write(record.modified, to: &$0) }
        }
        object.append("deleted", value: .bool(record.isDeleted))
        object.append("zoneID") { caller.write(record.recordID.zoneID, to: &$0) }
    }

    private func write<Object: JSONObjectBuilder>(
        fieldsOf record: ShadowRecord, for caller: RecordCaller, to object: inout Object
    ) {
        let definition = caller.schema.recordTypes[record.recordType]
        for (name, value) in record.fields.sorted(by: { $0.key < $1.key })
        where desiredKeys?.contains(name) != false {
            guard !isPlain else {
                let written = record.wire[name] ?? value.answered(numbers)
                let whole =
                    Self.refers(value)
                    ? Self.namingZones(in: written, of: record, for: caller) : written
                object.append(name, value: whole)
                continue
            }
            let form = AnsweredField(
                value, wire: record.wire[name], known: definition?.fields[name]?.type,
                numbers: numbers)
            let whole =
                Self.referring.contains(form.type)
                ? Self.namingZones(in: form.value, of: record, for: caller) : form.value
            object.append(name) { field in
                field.append("value", value: whole)
                field.append("type", text: form.type)
            }
        }
    }

    /// The words of fields that lead to records.
    private static let referring: Set<String> = [
        SchemaFieldType.Element.reference.answered,
        SchemaFieldType.Element.reference.answered + "_LIST",
    ]

    /// Whether a value leads to records, and to nothing else.
    private static func refers(_ value: FieldValue) -> Bool {
        switch value {
        case .reference: true
        case .list(let values): !values.isEmpty && values.allSatisfy { refers($0) || $0.isNull }
        default: false
        }
    }

    /// References with their zones as the service names them: clients' types demand the owner of a
    /// zone (edorphy's CloudKitWebServices ends at one without), and the zone: cloudkit_flutter
    /// fails without, and TalkToCloud takes the reference for none.
    ///
    /// Where none was written, the default one is meant. Only with an action in a zone of the
    /// user's own it is the record's, and for conditions the default one: none is told, because a
    /// client that sends it back would decide that.
    private static func namingZones(
        in value: JSONValue, of record: ShadowRecord, for caller: RecordCaller
    ) -> JSONValue {
        switch value {
        case .array(let elements):
            return .array(elements.map { namingZones(in: $0, of: record, for: caller) })
        case .object(var reference):
            guard let written = reference["zoneID"] else {
                if record.recordID.zoneID == .default || reference["action"] == "NONE" {
                    reference["zoneID"] = caller.json(.default)
                }
                return .object(reference)
            }
            guard let zoneID = try? ZoneID(json: written, path: "zoneID") else { return value }
            reference["zoneID"] = caller.json(caller.zoneID(zoneID))
            return .object(reference)
        default: return value
        }
    }

    /// Appends the members of a stamp, always all three: CloudKit's always has them, and clients'
    /// types demand it (OpenCloudKit and others drop a stamp that lacks one).
    private static func write<Object: JSONObjectBuilder>(
        _ stamp: RecordStamp, to object: inout Object
    ) {
        object.append("timestamp", value: .integer(stamp.at.milliseconds))
        object.append("userRecordName", text: stamp.userID?.rawValue ?? UnnamedStamp.user)
        object.append("deviceID", text: stamp.deviceID?.rawValue ?? UnnamedStamp.device)
    }
}

/// The names in a stamp when nobody was named.
enum UnnamedStamp {
    /// No user's record name: a database posted the change, and did not say on whose behalf.
    static let user = "_" + String(repeating: "0", count: 32)
    /// The device of changes that came by a web service; CloudKit's own answers have it too.
    static let device = "2"
}
