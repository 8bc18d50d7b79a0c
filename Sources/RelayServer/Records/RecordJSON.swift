import RelayModel
import Storage

/// The form of records in answers: the shown fields, and the form of numbers.
struct RecordJSON: Sendable {
    /// The names of the shown fields; `nil` shows all.
    var desiredKeys: Set<String>?
    /// The form of numbers.
    var numbers = AnsweredNumbers.asNumbers

    /// Whether a field is its bare value, without the type that says how to read it.
    var isPlain = false
    /// Whether the record's version is shown.
    var showsChangeTag = true

    /// Creates a form that shows all fields.
    init(numbers: AnsweredNumbers) {
        self.numbers = numbers
    }

    /// Creates a form from `desiredKeys` and `numbersAsStrings` of a request.
    ///
    /// - Throws: `JSONContractError` if they do not fit.
    init(_ body: JSONReader) throws {
        desiredKeys = try body.strings("desiredKeys").map { Set($0) }
        numbers = try body.bool("numbersAsStrings") == true ? .asStrings : .asNumbers
    }

    /// Returns the form with what `part` says of it by its own `desiredKeys` and
    /// `numbersAsStrings`.
    ///
    /// - Throws: `JSONContractError` if they do not fit.
    func overridden(by part: JSONReader) throws(JSONContractError) -> RecordJSON {
        var form = showing(try part.strings("desiredKeys"))
        if let asStrings = try part.bool("numbersAsStrings") {
            form.numbers = asStrings ? .asStrings : .asNumbers
        }
        return form
    }

    /// Returns a form that shows `keys` instead of the request's own keys, if they are given.
    func showing(_ keys: [String]?) -> RecordJSON {
        var shown = self
        if let keys { shown.desiredKeys = Set(keys) }
        return shown
    }

    /// Returns CloudKit's record dictionary.
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

    /// The type words of fields with references.
    private static let referring: Set<String> = [
        SchemaFieldType.Element.reference.answered,
        SchemaFieldType.Element.reference.answered + "_LIST",
    ]

    /// Returns whether a value consists of references only.
    private static func refers(_ value: FieldValue) -> Bool {
        switch value {
        case .reference: true
        case .list(let values): !values.isEmpty && values.allSatisfy { refers($0) || $0.isNull }
        default: false
        }
    }

    /// Adds zones to references, as the service does, because clients demand them: edorphy's
    /// CloudKitWebServices fails for a zone without an owner, cloudkit_flutter fails without a
    /// zone, and TalkToCloud does not recognise a reference without one.
    ///
    /// A reference without a zone means the default zone. The exception is a reference with an
    /// action in a custom zone: the action applies to the record's zone, and conditions to the
    /// default zone. Then no zone is written, because a client that sends it back would decide
    /// between these.
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

    /// Appends the members of a stamp; always all three, because CloudKit always has them and
    /// clients demand it (OpenCloudKit and others drop a stamp that lacks one).
    private static func write<Object: JSONObjectBuilder>(
        _ stamp: RecordStamp, to object: inout Object
    ) {
        object.append("timestamp", value: .integer(stamp.at.milliseconds))
        object.append("userRecordName", text: stamp.userID?.rawValue ?? UnnamedStamp.user)
        object.append("deviceID", text: stamp.deviceID?.rawValue ?? UnnamedStamp.device)
    }
}

/// The names in a stamp without a user or a device.
enum UnnamedStamp {
    /// The record name of no user, for a change whose database did not say who made it.
    static let user = "_" + String(repeating: "0", count: 32)
    /// The device of changes through a web service; CloudKit's own answers use it too.
    static let device = "2"
}
