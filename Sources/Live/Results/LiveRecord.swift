import PredicateLanguage
import RelayModel
package import Storage

/// A record as the relay keeps it, with the users who may read it.
package final class LiveRecord: Sendable {
    /// The record.
    package let record: ShadowRecord
    /// The users who may read it, from its own readers or else its type's grants; `nil` means
    /// everybody.
    package let readers: [String]?
    /// The estimated memory of the record.
    let bytes: Int

    /// Creates a record with its readers.
    init(_ record: ShadowRecord, readers: [String]?) {
        self.record = record
        self.readers = readers
        bytes = record.fields.reduce(256) { $0 + $1.key.utf8.count + $1.value.memoryBytes }
    }

    /// The ID of the record.
    var id: RecordID { record.recordID }

    /// Whether only some users may read the record; sources may name everybody among its readers.
    var isForSome: Bool { readers.map { !$0.contains(RecordChange.everybody) } ?? false }

    /// The record's key among the children of a node, as Firebase sees it.
    var key: String { id.recordName.rawValue }

    /// Returns the value of a field, or of a system field that CloudKit has for every record.
    func value(of field: String) -> FieldValue {
        if let field = SystemField(named: field) {
            return field.names.first.flatMap { record.systemFields[$0] } ?? .null
        }
        return record.fields[field] ?? .null
    }

    /// Returns the value by which Firebase orders the record.
    ///
    /// A record's own value is its field `value`, or all its fields if it has no such field. Its
    /// priority is its field `.priority`, or else `priority`.
    func value(of ordering: FirebaseQuery.Ordering) -> FieldValue {
        switch ordering {
        case .key: .null
        case .value: record.fields["value"] ?? .map(record.fields)
        case .priority: record.fields[".priority"] ?? record.fields["priority"] ?? .null
        case .child(let path):
            path.dropFirst().reduce(value(of: path.first ?? "")) { value, name in
                guard case .map(let members) = value else { return .null }
                return members[name] ?? .null
            }
        }
    }

    /// Returns the values by which an order sorts the record.
    func values(of basis: ResultOrder.Basis) -> [FieldValue] {
        switch basis {
        case .fields(let names): names.map { value(of: $0) }
        case .firebase(let ordering): [value(of: ordering)]
        }
    }

    /// Returns whether the record looks the same as `other` in the fields `keys`.
    func isSame(as other: LiveRecord, _ keys: [String]?) -> Bool {
        let (fields, others) = (record.fields, other.record.fields)
        guard let keys else {
            return fields == others
                && fields.allSatisfy { Self.isSame($0.value, as: others[$0.key]) }
        }
        return keys.allSatisfy { Self.isSame(fields[$0], as: others[$0]) }
    }

    /// Returns whether two values look the same; equal texts may differ in their bytes.
    static func isSame(_ value: FieldValue?, as other: FieldValue?) -> Bool {
        guard value == other else { return false }
        guard let value, let other else { return true }
        return value.isSpelled(as: other)
    }
}

private extension FieldValue {
    /// Returns whether all texts in the value have the same bytes as in an equal value.
    func isSpelled(as other: FieldValue) -> Bool {
        switch (self, other) {
        case (.string(let text), .string(let otherText)):
            text.utf8.elementsEqual(otherText.utf8)
        case (.list(let values), .list(let others)):
            zip(values, others).allSatisfy { $0.isSpelled(as: $1) }
        case (.map(let members), .map(let others)):
            members.allSatisfy { LiveRecord.isSame($0.value, as: others[$0.key]) }
        default: true
        }
    }
}

// MARK: - From the log

extension RecordImage {
    /// The record's own fields, without the system fields.
    ///
    /// Images of changes that were made through this relay contain the system fields too.
    var ownFields: RecordFields {
        fields.filter { !$0.value.isNull && SystemField(named: $0.key) == nil }
    }
}

extension RecordChange {
    /// Returns a creation of the record, which the index can match against conditions.
    static func showing(_ record: ShadowRecord, in place: RecordPlace) -> RecordChange {
        var change = RecordChange(.create, of: record.recordType, record.recordID)
        change.database = place.database
        change.owner = place.owner
        change.after = RecordImage(
            record.fields, completeness: record.isPartial ? .partial : .full)
        change.created = RecordTrace(record.created)
        change.occurredAt = record.modified.at
        change.origin = ChangeOrigin(
            deviceID: record.modified.deviceID, userID: record.modified.userID)
        return change
    }

    /// Returns the record as it was kept before this change; `nil` if there was none.
    ///
    /// Its position is `.start`, because the log does not say which version the record had.
    func keptBefore(at appendedAt: Timestamp) -> LiveRecord? {
        let image = kept.map(\.image) ?? (operation == .create ? nil : before)
        guard let image else { return nil }
        var record = record(image, at: .start, appendedAt)
        if let made = kept?.created { record.created = Self.stamp(made) }
        record.modified = former ?? kept?.modified.map(Self.stamp) ?? record.created
        record.readers = kept.map(\.readers) ?? readersBefore ?? readers
        return LiveRecord(record, readers: record.readers)
    }

    /// Returns the record as it is kept after this change, at its position; `nil` if it is deleted.
    ///
    /// `base` is the record as it was kept before, if that is known. The extra members that clients
    /// wrote with a value stay for as long as the value does.
    func keptAfter(
        _ entry: LogPosition, at appendedAt: Timestamp, base: LiveRecord?
    ) -> LiveRecord? {
        guard operation != .delete else { return nil }
        var record = record(after, at: entry, appendedAt)
        let base = base?.record
        let made = created.map(Self.stamp)
        // A creation that names its creator takes the record over from the previous creator.
        let isTakenOver = operation == .create && made != nil
        let first = isTakenOver ? made : base?.created ?? kept?.created.map(Self.stamp) ?? made
        // The user who changes an unknown public record has not created it; the shadow agrees.
        let unknown = operation != .create && database == .public
        record.created = first ?? (unknown ? record.created : record.modified)
        if after == nil {
            record.fields = base?.fields ?? before?.ownFields ?? [:]
            record.isPartial = true
        }
        for member in isTakenOver ? [] : base?.wire.members ?? []
        where base?.fields[member.name] == record.fields[member.name] {
            record.wire[member.name] = member.value
        }
        return LiveRecord(record, readers: readers)
    }

    /// Returns what one image of the change shows of the record, for queries of changes.
    func shown(
        _ side: ImageSide, _ entry: LogPosition, at appendedAt: Timestamp
    ) -> LiveRecord? {
        guard let image = side == .before ? before : after else { return nil }
        var record = record(image, at: entry, appendedAt)
        if side == .before, let former { record.modified = former }
        return LiveRecord(record, readers: readers)
    }

    /// Returns the record without fields, for a change that says only which record it is.
    func named(_ entry: LogPosition, at appendedAt: Timestamp) -> LiveRecord {
        LiveRecord(record(nil, at: entry, appendedAt), readers: readers)
    }

    /// Returns the record with the fields of an image, modified by this change.
    private func record(
        _ image: RecordImage?, at position: LogPosition, _ appendedAt: Timestamp
    ) -> ShadowRecord {
        let moment = occurredAt ?? appendedAt
        let made = created ?? RecordTrace(at: moment, userID: operation == .create ? editor : nil)
        var record = ShadowRecord(
            recordID: recordID, recordType: recordType, fields: image?.ownFields ?? [:],
            readers: readers, created: Self.stamp(made),
            modified: RecordStamp(at: moment, userID: editor, deviceID: origin.deviceID),
            source: .cloudKit, position: position)
        record.isPartial = image?.completeness == .partial
        return record
    }

    /// Who modified the record before this change, and when.
    private var former: RecordStamp? { formerlyModified.map(Self.stamp) }

    private static func stamp(_ trace: RecordTrace) -> RecordStamp {
        RecordStamp(at: trace.at, userID: trace.userID, deviceID: nil)
    }
}
