import RelayModel

/// What the operations of one request may still cost.
package struct RecordEditAllowance: Sendable {
    /// What all of them may append: a change holds the whole record before and after, however
    /// little of it a request writes.
    package static let maximumBytes = 16 * 1024 * 1024

    /// The bytes that they may append.
    package var appended = maximumBytes
    /// The bytes of records in the way that they may be told.
    package var told = Limits.maximumPageBytes
    /// The records that may go along with those that they delete.
    package var cascade: CascadeRoom
    /// Whether one of them is unfinished: those after it wait.
    package var isUnfinished = false

    /// All of it, with what may go along.
    package init(_ cascade: CascadeRoom) {
        self.cascade = cascade
    }
}

extension RecordEditOutcome {
    /// The outcome as it is told: a refusal has the record that is in the way while there is room.
    ///
    /// A small request could otherwise be answered a large record for each operation.
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
    /// The bytes of its fields in an answer, about.
    package var toldBytes: Int {
        JSONValue.object(FieldValue.notation(fields: fields)).utf8.count
            + JSONValue.object(wire).utf8.count
    }
}
