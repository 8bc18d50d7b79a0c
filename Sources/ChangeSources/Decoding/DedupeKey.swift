import Crypto
import RelayModel

/// What makes two reports the same change.
package struct DedupeKey: Sendable, Hashable {
    /// Where the key comes from, best first.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The source's own position: the same after its restart.
        case position
        /// A delivery ID that is the same on every attempt.
        case delivery
        /// The places that the mapping names.
        case expression
        /// The content itself, within a window.
        case content
    }

    /// Where the key comes from.
    package let kind: Kind
    /// The key, unique within the source and the kind, at most 255 bytes.
    package let text: String
    /// The SHA-256 of what the change says.
    ///
    /// The same key with another digest is no repetition: a delivery ID was used twice.
    package let digest: [UInt8]
    /// For how long the key holds, where it is not the relay's window for keys (72 h).
    package let window: Duration?

    /// Creates a key; a longer text is replaced by its digest.
    package init(_ kind: Kind, _ text: String, digest: [UInt8], window: Duration? = nil) {
        self.kind = kind
        self.text =
            text.utf8.count <= Limits.maximumNameBytes
            ? text : "sha256:" + Hexadecimal.encode(SHA256.hash(data: Array(text.utf8)))
        self.digest = digest
        self.window = window
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
        object["before"] = before.map(Self.json)
        object["after"] = after.map(Self.json)
        object["changedKeys"] = changedKeys.map { .array($0.sorted().map { .string($0) }) }
        object["device"] = origin.deviceID.map { .string($0.rawValue) }
        object["user"] = origin.userID.map { .string($0.rawValue) }
        object["readers"] = readers.map { .array($0.sorted().map { .string($0) }) }
        object["version"] = version.map { .integer($0) }
        return Array(SHA256.hash(data: JSONValue.object(object).utf8))
    }

    private static func json(_ image: RecordImage) -> JSONValue {
        [
            "fields": .object(FieldValue.notation(fields: image.fields)),
            "completeness": .string(image.completeness.rawValue),
        ]
    }
}
