package import RelayModel

/// What an operation makes of a record.
struct RecordDecision {
    /// The record as it is afterwards; its position is set when it has one.
    var record: ShadowRecord
    /// The change that is appended.
    var change: RecordChange
}

extension RecordEdit {
    /// Decides what the operation makes of `current`: a pure function of what the transaction sees.
    ///
    /// `nil` in the place of a decision means that nothing has to be done.
    func decide(
        on current: ShadowRecord?, in place: RecordPlace, by editor: RecordEditor,
        at now: Timestamp
    ) -> Result<RecordDecision?, RecordEditRefused> {
        guard let current, !current.isDeleted else {
            return decideWithoutRecord(in: place, by: editor, at: now)
        }
        if let recordType, recordType != current.recordType {
            return .failure(.init(.otherType(current.recordType)))
        }
        switch kind {
        case .create: return .failure(.init(.exists(current)))
        case .update, .replace:
            guard let changeTag else { return .failure(.init(.tagRequired)) }
            if changeTag != current.changeTag { return .failure(.init(.conflict(current))) }
        case .delete:
            if let changeTag, changeTag != current.changeTag {
                return .failure(.init(.conflict(current)))
            }
        case .forceUpdate, .forceReplace, .forceDelete: break
        }
        guard mayWrite(current, editor, place) else { return .failure(.init(.notWritable)) }
        return .success(decision(on: current, in: place, by: editor, at: now))
    }

    private func decideWithoutRecord(
        in place: RecordPlace, by editor: RecordEditor, at now: Timestamp
    ) -> Result<RecordDecision?, RecordEditRefused> {
        switch kind {
        case .update, .replace, .delete: return .failure(.init(.notFound))
        case .forceDelete: return .success(nil)
        case .create, .forceUpdate, .forceReplace: break
        }
        guard let recordType else { return .failure(.init(.typeRequired)) }
        let stamp = RecordStamp(
            at: now, userID: editor.userID, deviceID: device(unlessEchoOf: nil))
        let record = ShadowRecord(
            recordID: recordID, recordType: recordType,
            fields: fields.filter { !$0.value.isNull }, wire: wire, readers: readers,
            created: stamp, modified: stamp, source: .cloudKit, position: .start)
        var change = self.change(.create, record, in: place)
        change.after = record.image
        return .success(RecordDecision(record: record, change: change))
    }

    private func decision(
        on current: ShadowRecord, in place: RecordPlace, by editor: RecordEditor,
        at now: Timestamp
    ) -> RecordDecision {
        var record = current
        record.source = .cloudKit
        record.modified = RecordStamp(
            at: now, userID: editor.userID, deviceID: device(unlessEchoOf: current.modified))
        guard kind != .delete, kind != .forceDelete else {
            record.fields = [:]
            record.wire = [:]
            record.isDeleted = true
            var change = self.change(.delete, record, in: place)
            change.before = current.image
            return RecordDecision(record: record, change: change)
        }
        if kind == .replace || kind == .forceReplace {
            record.fields = [:]
            record.wire = [:]
            record.isPartial = false
        }
        for (name, value) in fields {
            record.fields[name] = value.isNull ? nil : value
            record.wire[name] = wire[name]
        }
        var change = self.change(.update, record, in: place)
        change.before = current.image
        change.after = record.image
        change.changedKeys = Set(current.fields.keys).union(record.fields.keys)
            .filter { current.fields[$0] != record.fields[$0] }.sorted()
        return RecordDecision(record: record, change: change)
    }

    private func change(
        _ operation: ChangeOperation, _ record: ShadowRecord, in place: RecordPlace
    ) -> RecordChange {
        var change = RecordChange(operation, of: record.recordType, record.recordID)
        change.database = place.database
        change.owner = place.owner
        change.origin = ChangeOrigin(
            deviceID: record.modified.deviceID, userID: record.modified.userID)
        change.readers = record.readers
        change.occurredAt = record.modified.at
        return change
    }

    /// In the public database a user writes what that user created, unless the type grants more.
    private func mayWrite(
        _ current: ShadowRecord, _ editor: RecordEditor, _ place: RecordPlace
    ) -> Bool {
        place.database != .public || editor.isServer || isWritableByAll
            || editor.userID != nil && editor.userID == current.created.userID
    }

    /// Clients send a fetched record back as it was: its `modified` then names whoever changed it
    /// before, which is not who changes it now.
    private func device(unlessEchoOf stored: RecordStamp?) -> DeviceID? {
        guard let stated = statedStamp, let device = stated.deviceID else { return deviceID }
        if let stored, stored.deviceID == device,
            stored.at.milliseconds == stated.at.milliseconds
        {
            return deviceID
        }
        return device
    }
}

/// A refusal as an error.
struct RecordEditRefused: Error {
    let refusal: RecordRefusal

    init(_ refusal: RecordRefusal) {
        self.refusal = refusal
    }
}

extension ShadowRecord {
    /// The record as predicates see it: its fields, and CloudKit's system fields under each of
    /// their names.
    package var image: RecordImage {
        RecordImage(
            fields.merging(systemFields) { own, _ in own },
            completeness: isPartial ? .partial : .full)
    }

    /// CloudKit's system fields, under the names of the native class, of the web service and of the
    /// schema language.
    package var systemFields: RecordFields {
        var system: RecordFields = [:]
        for field in SystemField.allCases {
            guard let value = value(of: field) else { continue }
            for name in field.names { system[name] = value }
        }
        return system
    }

    private func value(of field: SystemField) -> FieldValue? {
        switch field {
        case .recordID: .reference(RecordReference(recordID))
        case .recordName: .string(recordID.recordName.rawValue)
        case .creationDate: .timestamp(created.at)
        case .modificationDate: .timestamp(modified.at)
        case .creator: Self.reference(to: created.userID)
        case .modifier: Self.reference(to: modified.userID)
        case .creatorName: created.userID.map { .string($0.rawValue) }
        case .modifierName: modified.userID.map { .string($0.rawValue) }
        }
    }

    private static func reference(to user: UserID?) -> FieldValue? {
        user.flatMap { RecordName(rawValue: $0.rawValue) }
            .map { .reference(RecordReference(RecordID(recordName: $0))) }
    }
}
