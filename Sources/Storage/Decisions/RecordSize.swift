package import RelayModel

extension ShadowRecord {
    /// Returns whether the edit from `former` made the record larger than a record may be.
    ///
    /// One operation writes at most that much, but many operations could build a record of any
    /// size. Each change holds the record twice, and every reader of the log reads it.
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
    /// Returns this partial image of a record completed with the newly reported fields.
    ///
    /// If the result would exceed the size of a webhook or the number of fields of an image, only
    /// the new part is kept. Otherwise a source could build a record of any size.
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
    /// The approximate size of the value in bytes, counting texts and data without writing the
    /// value out.
    ///
    /// It never exceeds what a client wrote, so a value within a limit is never refused.
    var heldBytes: Int {
        switch self {
        case .string(let text): 2 + text.utf8.count
        case .bytes(let bytes): 2 + bytes.count
        case .list(let values): values.reduce(2) { $0 + $1.heldBytes }
        case .set(let values): values.reduce(2) { $0 + $1.heldBytes }
        case .map(let members):
            members.reduce(2) { $0 + 2 + $1.key.utf8.count + $1.value.heldBytes }
        case .reference(let reference): 2 + reference.recordID.recordName.rawValue.utf8.count
        // Ten bits make about three digits. The separator between two values takes one byte.
        case .integer(let number):
            2 + max(0, UInt64.bitWidth - 1 - number.magnitude.leadingZeroBitCount) * 3 / 10
        case .double: 2
        case .null, .bool, .timestamp, .location, .uuid, .objectID: 4
        }
    }
}
