package import RelayModel

extension ShadowRecord {
    /// Whether what was added to `former` makes it larger than a record may be.
    ///
    /// One operation writes no more than that; many would make a record of any size, which each
    /// change has twice, and everybody who follows the log reads.
    package func hasOutgrown(_ former: ShadowRecord) -> Bool {
        let most = Limits.maximumRecordBytes
        let (fields, wire) = (fieldBytes, wireBytes)
        return fields > most && fields > former.fieldBytes
            || wire > most && wire > former.wireBytes
    }

    private var fieldBytes: Int { FieldValue.map(fields).heldBytes }

    private var wireBytes: Int { wire.members.isEmpty ? 0 : JSONValue.object(wire).utf8.count }
}

extension RecordImage {
    /// What is known of a record that was told of in parts, with what is told of now.
    ///
    /// Where both together are larger than any webhook, or have more fields than one image may, it
    /// is this part alone: a source could else make a record of any size.
    package func completed(by told: RecordImage) -> RecordImage {
        let whole = overlaid(with: told)
        guard told.completeness == .partial else { return whole }
        let isTooLarge =
            whole.fields.count > Limits.maximumFieldsPerRecord
            || FieldValue.map(whole.fields).heldBytes > Limits.maximumWebhookBytes
        return isTooLarge ? told : whole
    }
}

extension FieldValue {
    /// The bytes that it takes, about: those of its texts and data, without writing them.
    ///
    /// No more than a client has written of it, so that nobody is refused what is within a bound.
    var heldBytes: Int {
        switch self {
        case .string(let text): 2 + text.utf8.count
        case .bytes(let bytes): 2 + bytes.count
        case .list(let values): values.reduce(2) { $0 + $1.heldBytes }
        case .set(let values): values.reduce(2) { $0 + $1.heldBytes }
        case .map(let members):
            members.reduce(2) { $0 + 2 + $1.key.utf8.count + $1.value.heldBytes }
        case .reference(let reference): 2 + reference.recordID.recordName.rawValue.utf8.count
        // Ten bits are three digits; what stands between two values is a byte.
        case .integer(let number):
            2 + max(0, UInt64.bitWidth - 1 - number.magnitude.leadingZeroBitCount) * 3 / 10
        case .double: 2
        case .null, .bool, .timestamp, .location, .uuid, .objectID: 4
        }
    }
}
