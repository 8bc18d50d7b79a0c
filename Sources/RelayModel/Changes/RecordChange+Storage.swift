/// The form in which the log stores a change: lossless JSON with short names, in the notation of
/// ``FieldValue``.
extension RecordChange {
    /// The form in which the log stores the change.
    public var storedForm: JSONObject {
        var members = formBeforeImages.members
        if let before { members.append(("before", before.storedForm)) }
        if let after { members.append(("after", after.storedForm)) }
        return JSONObject(members + formAfterImages.members)
    }

    /// ``storedForm`` as compact JSON in UTF-8; the members that most changes have are written
    /// directly.
    var storedBytes: [UInt8] {
        var writer = JSONObjectWriter()
        writer.append("op", text: operation.rawValue)
        writer.append("type", text: recordType.rawValue)
        writer.append("name", text: recordID.recordName.rawValue)
        writer.append("db", text: database.rawValue)
        if recordID.zoneID != .default { writer.append("zone", value: recordID.zoneID.json) }
        if let owner { writer.append("owner", text: owner.rawValue) }
        if let before { writer.append("before", before.writeStored) }
        if let after { writer.append("after", after.writeStored) }
        guard saysLittleBeside else {
            writer.append(formAfterImages)
            return writer.finish()
        }
        if let occurredAt {
            writer.append("at", FieldValue.timestamp(occurredAt).writeNotation)
        }
        if let version { writer.append("version", value: .integer(version)) }
        if isSnapshot { writer.append("snapshot", value: true) }
        return writer.finish()
    }

    /// Whether the change has nothing besides its images except the time, the version and the
    /// snapshot flag.
    private var saysLittleBeside: Bool {
        changedKeys == nil && origin.deviceID == nil && origin.userID == nil && readers == nil
            && readersBefore == nil && created == nil && formerlyModified == nil && kept == nil
            && !isUnkept
    }

    private var formBeforeImages: JSONObject {
        var object: JSONObject = [
            "op": .string(operation.rawValue), "type": .string(recordType.rawValue),
            "name": .string(recordID.recordName.rawValue), "db": .string(database.rawValue),
        ]
        if recordID.zoneID != .default { object["zone"] = recordID.zoneID.json }
        object["owner"] = owner.map { .string($0.rawValue) }
        return object
    }

    private var formAfterImages: JSONObject {
        var object: JSONObject = [:]
        object["keys"] = changedKeys.map { .array($0.map { .string($0) }) }
        object["device"] = origin.deviceID.map { .string($0.rawValue) }
        object["user"] = origin.userID.map { .string($0.rawValue) }
        object["readers"] = readers.map { .array($0.map { .string($0) }) }
        object["readersBefore"] = readersBefore.map { .array($0.map { .string($0) }) }
        object["created"] = created?.storedForm
        object["former"] = formerlyModified?.storedForm
        object["kept"] = kept?.storedForm
        object["unkept"] = isUnkept ? true : nil
        object["at"] = occurredAt.map { FieldValue.timestamp($0).notation }
        object["version"] = version.map { .integer($0) }
        object["snapshot"] = isSnapshot ? true : nil
        return object
    }

    /// Returns the bytes with which the stored text of every change of this operation begins, and
    /// the text of no other change.
    package static func storedBeginning(of operation: ChangeOperation) -> [UInt8] {
        Array(#"{"op":"\#(operation.rawValue)""#.utf8)
    }

    /// Reads a change from the form in which the log stores it.
    ///
    /// - Throws: ``JSONContractError`` if the form is not one that ``storedForm`` writes.
    public init(storedForm json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        var zoneID = ZoneID.default
        if let zone = reader.value("zone") { zoneID = try ZoneID(json: zone, path: "zone") }
        let name: RecordName = try reader.require("name", try reader.identifier("name"))
        self.init(
            try reader.require("op", try reader.choice("op")),
            of: try reader.require("type", try reader.identifier("type")),
            RecordID(recordName: name, zoneID: zoneID))
        database = try reader.require("db", try reader.choice("db"))
        owner = try reader.identifier("owner")
        before = try RecordImage(storedForm: reader.value("before"), path: "before")
        after = try RecordImage(storedForm: reader.value("after"), path: "after")
        changedKeys = try reader.strings("keys")
        origin = ChangeOrigin(
            deviceID: try reader.identifier("device"), userID: try reader.identifier("user"))
        readers = try reader.strings("readers")
        readersBefore = try reader.strings("readersBefore")
        created = try RecordTrace(try reader.reader("created"))
        formerlyModified = try RecordTrace(try reader.reader("former"))
        kept = try KeptState(try reader.reader("kept"))
        isUnkept = try reader.bool("unkept") ?? false
        if let moment = reader.value("at"),
            case .timestamp(let timestamp) = try FieldValue(notation: moment, path: "at")
        {
            occurredAt = timestamp
        }
        version = try reader.integer("version")
        isSnapshot = try reader.bool("snapshot") ?? false
    }
}

extension KeptState {
    /// The form in which the log stores the kept state; an empty object if there was no record.
    var storedForm: JSONValue {
        var object: JSONObject = [:]
        object["image"] = image?.storedForm
        object["readers"] = readers.map { .array($0.map { .string($0) }) }
        object["created"] = created?.storedForm
        object["modified"] = modified?.storedForm
        return .object(object)
    }

    /// Reads what ``storedForm`` wrote; returns `nil` without a reader.
    init?(_ reader: JSONReader?) throws(JSONContractError) {
        guard let reader else { return nil }
        self.init(
            image: try RecordImage(
                storedForm: reader.value("image"), path: reader.path(of: "image")),
            readers: try reader.strings("readers"))
        created = try RecordTrace(try reader.reader("created"))
        modified = try RecordTrace(try reader.reader("modified"))
    }
}

extension RecordImage {
    /// The fields, under a member that says whether the image is full or partial.
    var storedForm: JSONValue {
        let object = JSONValue.object(FieldValue.notation(fields: fields))
        switch completeness {
        case .full: return ["full": object]
        case .partial: return ["partial": object]
        }
    }

    /// Appends ``storedForm`` as compact JSON.
    func writeStored(to output: inout [UInt8]) {
        output.append(contentsOf: #"{""#.utf8)
        output.append(contentsOf: completeness.rawValue.utf8)
        output.append(contentsOf: #"":"#.utf8)
        FieldValue.writeNotation(of: fields, to: &output)
        output.append(UInt8(ascii: "}"))
    }

    init?(storedForm json: JSONValue?, path: String) throws(JSONContractError) {
        guard let json else { return nil }
        let reader = try JSONReader(json, path: path)
        if let full = try reader.reader("full") {
            self.init(try FieldValue.fields(notation: full.object, path: path))
        } else {
            let partial = try reader.require("partial", try reader.reader("partial"))
            self.init(
                try FieldValue.fields(notation: partial.object, path: path), completeness: .partial)
        }
    }
}
