import RelayModel

/// The remaining allowance of one request's operations.
package struct RecordEditAllowance: Sendable {
    /// The maximum number of bytes that all operations of a request may append.
    ///
    /// A change holds the whole record before and after, however little of it the request writes.
    package static let maximumBytes = 16 * 1024 * 1024

    /// The bytes that may still be appended.
    package var appended = maximumBytes
    /// The bytes that conflicting records may still take in the answer.
    package var told = Limits.maximumPageBytes
    /// The records that may still be deleted together with those that the request deletes.
    package var cascade: CascadeRoom
    /// Whether an operation is unfinished, so that the operations after it wait.
    package var isUnfinished = false

    /// Creates a full allowance with the given room for cascading deletions.
    package init(_ cascade: CascadeRoom) {
        self.cascade = cascade
    }
}

extension RecordEditOutcome {
    /// Returns the outcome as the client sees it: a refusal contains the conflicting record only
    /// while `room` lasts.
    ///
    /// Without this limit, a small request could get a large record for each of its operations.
    package func told(within room: inout Int) -> RecordEditOutcome {
        switch self {
        case .refused(.exists(let record?)):
            guard room > 0 else { return .refused(.exists(nil)) }
            room -= record.toldBytes
        case .refused(.conflict(let record?)):
            guard room > 0 else { return .refused(.conflict(nil)) }
            room -= record.toldBytes
        default: break
        }
        return self
    }
}

extension ShadowRecord {
    /// The approximate size of the record's fields in an answer, in bytes.
    package var toldBytes: Int {
        JSONValue.object(FieldValue.notation(fields: fields)).utf8.count
            + JSONValue.object(wire).utf8.count
    }
}
