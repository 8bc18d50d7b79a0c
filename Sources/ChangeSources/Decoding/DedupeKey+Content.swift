import Crypto
import RelayModel

extension DedupeKey {
    /// Creates a key of at most 255 bytes: a longer text is replaced by its digest.
    init(_ kind: Kind, _ text: String, digest: [UInt8], window: Duration? = nil) {
        let isShort = text.utf8.count <= Limits.maximumNameBytes
        self.init(
            kind: kind,
            text: isShort
                ? text : "sha256:" + Hexadecimal.encode(SHA256.hash(data: Array(text.utf8))),
            digest: digest, window: window)
    }
}

extension RecordChange {
    /// The SHA-256 of what this change says, the same for every report of it.
    ///
    /// `occurredAt` is left out: some sources write the time of the attempt there.
    var contentDigest: [UInt8] {
        var object: JSONObject = [
            "operation": .string(operation.rawValue), "recordType": .string(recordType.rawValue),
            "recordName": .string(recordID.recordName.rawValue),
            "zone": .string(recordID.zoneID.zoneName), "database": .string(database.rawValue),
            "snapshot": .bool(isSnapshot),
        ]
        object["zoneOwner"] = recordID.zoneID.ownerRecordName.map { .string($0.rawValue) }
        object["owner"] = owner.map { .string($0.rawValue) }
        var writer = JSONObjectWriter()
        writer.append(object)
        if let before { writer.append("before", before.writeContent) }
        if let after { writer.append("after", after.writeContent) }
        var rest: JSONObject = [:]
        rest["changedKeys"] = changedKeys.map { .array($0.sorted().map { .string($0) }) }
        rest["device"] = origin.deviceID.map { .string($0.rawValue) }
        rest["user"] = origin.userID.map { .string($0.rawValue) }
        rest["readers"] = readers.map { .array($0.sorted().map { .string($0) }) }
        rest["version"] = version.map { .integer($0) }
        writer.append(rest)
        return Array(SHA256.hash(data: writer.finish()))
    }
}

private extension RecordImage {
    func writeContent(to output: inout [UInt8]) {
        output.append(contentsOf: #"{"fields":"#.utf8)
        FieldValue.writeNotation(of: fields, to: &output)
        output.append(contentsOf: #","completeness":""#.utf8)
        output.append(contentsOf: completeness.rawValue.utf8)
        output.append(contentsOf: #""}"#.utf8)
    }
}
