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
        var text = ContentText()
        text.add("operation", operation.rawValue)
        text.add("recordType", recordType.rawValue)
        text.add("recordName", recordID.recordName.rawValue)
        text.add("zone", recordID.zoneID.zoneName)
        text.add("database", database.rawValue)
        text.add("snapshot", JSONValue.bool(isSnapshot))
        text.add("zoneOwner", recordID.zoneID.ownerRecordName?.rawValue)
        text.add("owner", owner?.rawValue)
        text.add("before", before)
        text.add("after", after)
        text.add("changedKeys", changedKeys)
        text.add("device", origin.deviceID?.rawValue)
        text.add("user", origin.userID?.rawValue)
        text.add("readers", readers)
        text.add("version", version.map { JSONValue.integer($0) })
        return Array(SHA256.hash(data: text.closed))
    }
}

/// An object of JSON as it is written, without the values that it would be written from: every
/// change has a digest, and most of what one cost was making those.
private struct ContentText {
    private var bytes = [UInt8(ascii: "{")]

    init() {
        bytes.reserveCapacity(480)
    }

    /// The text, with its end.
    var closed: [UInt8] { bytes + [UInt8(ascii: "}")] }

    mutating func add(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        begin(name)
        JSONValue.write(text, to: &bytes)
    }

    mutating func add(_ name: StaticString, _ value: JSONValue?) {
        guard let value else { return }
        begin(name)
        value.write(to: &bytes)
    }

    mutating func add(_ name: StaticString, _ words: [String]?) {
        guard let words else { return }
        add(name, JSONValue.array(words.sorted().map { .string($0) }))
    }

    mutating func add(_ name: StaticString, _ image: RecordImage?) {
        guard let image else { return }
        begin(name)
        bytes += "{\"fields\":{".utf8
        var isFirst = true
        for (name, value) in image.fields.sorted(by: { $0.key < $1.key }) {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            JSONValue.write(name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            if case .string(let text) = value {
                JSONValue.write(text, to: &bytes)
            } else {
                value.notation.write(to: &bytes)
            }
        }
        bytes += "},\"completeness\":".utf8
        JSONValue.write(image.completeness.rawValue, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
    }

    private mutating func begin(_ name: StaticString) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        bytes += name.description.utf8
        bytes += "\":".utf8
    }
}
