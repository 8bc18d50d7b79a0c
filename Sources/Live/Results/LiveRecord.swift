import PredicateLanguage
import RelayModel
package import Storage

/// A record as the relay keeps it, with those who may read it.
package final class LiveRecord: Sendable {
    /// The record.
    package let record: ShadowRecord
    /// Who may read it by its own readers, or else by the grants of its type; `nil` is everybody.
    package let readers: [String]?
    /// What it takes in memory, about.
    let bytes: Int

    /// Notes who may read a record.
    init(_ record: ShadowRecord, readers: [String]?) {
        self.record = record
        self.readers = readers
        bytes = record.fields.reduce(256) { $0 + $1.key.utf8.count + $1.value.memoryBytes }
    }

    /// Which record it is.
    var id: RecordID { record.recordID }

    /// Whether who looks decides if it is shown: sources may name everybody among its readers.
    var isForSome: Bool { readers.map { !$0.contains(RecordChange.everybody) } ?? false }

    /// Its key among the children of a node, as Firebase sees it.
    var key: String { id.recordName.rawValue }

    /// The value of a field, or of what CloudKit knows of every record.
    func value(of field: String) -> FieldValue {
        if let field = SystemField(named: field) {
            return field.names.first.flatMap { record.systemFields[$0] } ?? .null
        }
        return record.fields[field] ?? .null
    }

    /// The value by which Firebase orders it.
    ///
    /// A record's own value is its field `value`, and without one all that it has; its priority is
    /// its field `.priority`, or else `priority`.
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

    /// The values by which an order sorts it.
    func values(of basis: ResultOrder.Basis) -> [FieldValue] {
        switch basis {
        case .fields(let names): names.map { value(of: $0) }
        case .firebase(let ordering): [value(of: ordering)]
        }
    }

    /// Whether it shows the same as `other`, as far as `keys` go.
    func isSame(as other: LiveRecord, _ keys: [String]?) -> Bool {
        let (fields, others) = (record.fields, other.record.fields)
        guard let keys else {
            return fields == others
                && fields.allSatisfy { Self.isSame($0.value, as: others[$0.key]) }
        }
        return keys.allSatisfy { Self.isSame(fields[$0], as: others[$0]) }
    }

    /// Whether two values are shown alike: texts that are equal may be spelled otherwise.
    static func isSame(_ value: FieldValue?, as other: FieldValue?) -> Bool {
        guard value == other else { return false }
        guard let value, let other else { return true }
        return value.isSpelled(as: other)
    }
}

private extension FieldValue {
    /// Whether the texts in it have the bytes of those in a value that equals it.
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
    /// What the record itself has, without what the relay knows of every record: images of changes
    /// made here show that too.
    var ownFields: RecordFields {
        fields.filter { !$0.value.isNull && SystemField(named: $0.key) == nil }
    }
}

extension RecordChange {
    /// The change by which a record as it is kept is matched: a creation of it.
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

    /// The record as it was kept before this change; `nil` if there was none.
    ///
    /// Its position is none: which version it was the log does not say.
    func keptBefore(at appendedAt: Timestamp) -> LiveRecord? {
        let image = kept.map(\.image) ?? (operation == .create ? nil : before)
        guard let image else { return nil }
        var record = record(image, at: .start, appendedAt)
        if let made = kept?.created { record.created = Self.stamp(made) }
        record.modified = former ?? kept?.modified.map(Self.stamp) ?? record.created
        record.readers = kept.map(\.readers) ?? readersBefore ?? readers
        return LiveRecord(record, readers: record.readers)
    }

    /// The record as it is kept after this change, at its position; `nil` if it is gone.
    ///
    /// `base` is the record as it was kept before, where that is known: what clients wrote beyond
    /// the values holds for as long as the value does.
    func keptAfter(
        _ entry: LogPosition, at appendedAt: Timestamp, base: LiveRecord?
    ) -> LiveRecord? {
        guard operation != .delete else { return nil }
        var record = record(after, at: entry, appendedAt)
        let base = base?.record
        let made = created.map(Self.stamp)
        // A creation that says so takes the record over from whoever had made it.
        let isTakenOver = operation == .create && made != nil
        let first = isTakenOver ? made : base?.created ?? kept?.created.map(Self.stamp) ?? made
        // Whoever only changed what nothing was known of has not made it: as the shadow keeps it.
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

    /// What a change shows of the record in one of its images, for clients who see changes.
    func shown(
        _ side: ImageSide, _ entry: LogPosition, at appendedAt: Timestamp
    ) -> LiveRecord? {
        guard let image = side == .before ? before : after else { return nil }
        var record = record(image, at: entry, appendedAt)
        if side == .before, let former { record.modified = former }
        return LiveRecord(record, readers: readers)
    }

    /// A record of which the change says no more than which one it is.
    func named(_ entry: LogPosition, at appendedAt: Timestamp) -> LiveRecord {
        LiveRecord(record(nil, at: entry, appendedAt), readers: readers)
    }

    /// The record with what an image says of it, changed by this change.
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

    /// Who changed it before, and when.
    private var former: RecordStamp? { formerlyModified.map(Self.stamp) }

    private static func stamp(_ trace: RecordTrace) -> RecordStamp {
        RecordStamp(at: trace.at, userID: trace.userID, deviceID: nil)
    }
}
