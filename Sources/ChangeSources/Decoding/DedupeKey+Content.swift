import Crypto
import RelayModel

extension DedupeKey {
    /// Creates a key of at most 255 bytes.
    ///
    /// A longer text is replaced by its digest.
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
    /// The SHA-256 of the contents of this change, which is the same for every report of it.
    ///
    /// `occurredAt` is left out, because some sources write the time of the attempt there.
    var contentDigest: [UInt8] {
        var writer = JSONObjectWriter()
        writer.append("operation", text: operation.rawValue)
        writer.append("recordType", text: recordType.rawValue)
        writer.append("recordName", text: recordID.recordName.rawValue)
        writer.append("zone", text: recordID.zoneID.zoneName)
        writer.append("database", text: database.rawValue)
        writer.append("snapshot", value: .bool(isSnapshot))
        if let zoneOwner = recordID.zoneID.ownerRecordName {
            writer.append("zoneOwner", text: zoneOwner.rawValue)
        }
        if let owner { writer.append("owner", text: owner.rawValue) }
        if let before { writer.append("before", before.writeContent) }
        if let after { writer.append("after", after.writeContent) }
        if let changedKeys { writer.append("changedKeys", value: Self.list(changedKeys)) }
        if let device = origin.deviceID { writer.append("device", text: device.rawValue) }
        if let user = origin.userID { writer.append("user", text: user.rawValue) }
        if let readers { writer.append("readers", value: Self.list(readers)) }
        if let version { writer.append("version", value: .integer(version)) }
        return Array(SHA256.hash(data: writer.finish()))
    }

    /// The SHA-256 of the address of the changed record.
    var addressDigest: [UInt8] {
        var writer = JSONObjectWriter()
        writer.append("recordType", text: recordType.rawValue)
        writer.append("recordName", text: recordID.recordName.rawValue)
        writer.append("zone", text: recordID.zoneID.zoneName)
        writer.append("database", text: database.rawValue)
        if let zoneOwner = recordID.zoneID.ownerRecordName {
            writer.append("zoneOwner", text: zoneOwner.rawValue)
        }
        if let owner { writer.append("owner", text: owner.rawValue) }
        return Array(SHA256.hash(data: writer.finish()))
    }

    private static func list(_ names: [String]) -> JSONValue {
        .array(names.sorted().map { .string($0) })
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
