package import RelayModel

/// The result of applying one operation to a record.
package struct RecordDecision {
    /// The record after the operation.
    ///
    /// Its position is set once the change is appended.
    package var record: ShadowRecord
    /// The change to append.
    package var change: RecordChange

    package init(record: ShadowRecord, change: RecordChange) {
        self.record = record
        self.change = change
    }
}

extension RecordEdit {
    /// Decides what the operation does to `current`, as a pure function of what the transaction
    /// sees.
    ///
    /// A `nil` decision means that there is nothing to do.
    ///
    /// `isHidden` says that the editor may not know of the record. Unless the editor may write it,
    /// the operation then behaves as if the record did not exist, except that an operation that
    /// would create it is refused, because its name is taken.
    package func decide(
        on current: ShadowRecord?, isHidden: Bool = false, in place: RecordPlace,
        by editor: RecordEditor, at now: Timestamp
    ) -> Result<RecordDecision?, RecordEditRefused> {
        guard let current, !current.isDeleted else {
            return decideWithoutRecord(in: place, by: editor, at: now)
        }
        let isOtherType = recordType.map { $0 != current.recordType } ?? false
        if isOtherType, kind == .forceDelete {
            return byNameAlone.decide(
                on: current, isHidden: isHidden, in: place, by: editor, at: now)
        }
        if isHidden, let answer = answer(onHidden: current, in: place, by: editor) {
            return answer
        }
        if isOtherType { return .failure(.init(.otherType(current.recordType))) }
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
        let decision = decision(on: current, in: place, by: editor, at: now)
        if kind == .update || kind == .forceUpdate, decision.record.hasOutgrown(current) {
            return .failure(.init(.tooLarge))
        }
        return .success(decision)
    }

    /// This edit without its record type and what that type grants.
    ///
    /// CloudKit does not check the type of a forced deletion, because a client may write anything
    /// there. So a permission granted for the stated type must not count.
    private var byNameAlone: RecordEdit {
        var edit = self
        edit.recordType = nil
        edit.isWritableByAll = false
        return edit
    }

    /// Returns the answer about a record that the editor may not know of, or `nil` if the editor
    /// may write it anyway.
    private func answer(
        onHidden current: ShadowRecord, in place: RecordPlace, by editor: RecordEditor
    ) -> Result<RecordDecision?, RecordEditRefused>? {
        let isWritable =
            mayWrite(current, editor, place) && recordType.map { $0 == current.recordType } ?? true
        switch kind {
        case .create: return .failure(.init(.exists(current)))
        case .update, .replace:
            guard isWritable, changeTag == current.changeTag else {
                return .failure(.init(.notFound))
            }
        case .delete:
            guard isWritable, changeTag == nil || changeTag == current.changeTag else {
                return .failure(.init(.notFound))
            }
        case .forceDelete:
            if !isWritable { return .success(nil) }
        case .forceUpdate, .forceReplace:
            if !isWritable { return .failure(.init(.notWritable)) }
        }
        return nil
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
        guard mayCreate else { return .failure(.init(.notCreatable(recordType))) }
        let device = device(of: editor, unlessEchoOf: nil)
        let stamp = RecordStamp(
            at: now, userID: editor.userID, deviceID: stampsDevice ? device : nil)
        let record = ShadowRecord(
            recordID: recordID, recordType: recordType,
            fields: fields.filter { !$0.value.isNull }, wire: wire, readers: readers,
            created: stamp, modified: stamp, source: .cloudKit, position: .start)
        var change = self.change(.create, record, by: device, in: place)
        change.after = record.image
        return .success(RecordDecision(record: record, change: change))
    }

    private func decision(
        on current: ShadowRecord, in place: RecordPlace, by editor: RecordEditor,
        at now: Timestamp
    ) -> RecordDecision {
        var record = current
        record.source = .cloudKit
        let device = device(of: editor, unlessEchoOf: current.modified)
        record.modified = RecordStamp(
            at: now, userID: editor.userID, deviceID: stampsDevice ? device : nil)
        guard kind != .delete, kind != .forceDelete else {
            record.fields = [:]
            record.wire = [:]
            record.isDeleted = true
            var change = self.change(.delete, record, by: device, in: place)
            change.before = current.image
            change.formerlyModified = RecordTrace(current.modified)
            return RecordDecision(record: record, change: change)
        }
        if kind == .replace || kind == .forceReplace {
            record.fields = [:]
            record.wire = [:]
            record.isPartial = false
        }
        for (name, value) in fields {
            record.fields[name] = value.isNull ? nil : value
        }
        record.wire.take(fields.keys, from: wire)
        var change = self.change(.update, record, by: device, in: place)
        change.before = current.image
        change.formerlyModified = RecordTrace(current.modified)
        change.after = record.image
        change.changedKeys = Set(current.fields.keys).union(record.fields.keys)
            .filter { current.fields[$0] != record.fields[$0] }.sorted()
        return RecordDecision(record: record, change: change)
    }

    private func change(
        _ operation: ChangeOperation, _ record: ShadowRecord, by device: DeviceID?,
        in place: RecordPlace
    ) -> RecordChange {
        var change = RecordChange(operation, of: record.recordType, record.recordID)
        change.database = place.database
        change.owner = place.owner
        change.origin = ChangeOrigin(
            deviceID: device, userID: record.modified.userID)
        change.readers = record.readers
        change.occurredAt = record.modified.at
        change.created = RecordTrace(record.created)
        return change
    }

    /// In the public database a user may write only the records that this user created, unless the
    /// type grants more.
    private func mayWrite(
        _ current: ShadowRecord, _ editor: RecordEditor, _ place: RecordPlace
    ) -> Bool {
        place.database != .public || editor.isServer || isWritableByAll
            || recordType == nil && typesWritableByAll.contains(current.recordType)
            || editor.userID != nil && editor.userID == current.created.userID
    }

    /// The device that makes the change, or `nil` if the editor is anonymous.
    ///
    /// Clients send a fetched record back unchanged. Its `modified` stamp then names the device of
    /// the previous change, so a stamp that equals the stored one is ignored.
    ///
    /// An anonymous editor has no device: a device name without a user could belong to anyone.
    private func device(of editor: RecordEditor, unlessEchoOf stored: RecordStamp?) -> DeviceID? {
        guard editor.userID != nil || editor.isServer else { return nil }
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
package struct RecordEditRefused: Error {
    /// The refusal.
    package let refusal: RecordRefusal

    /// Creates the error for a refusal.
    package init(_ refusal: RecordRefusal) {
        self.refusal = refusal
    }
}

extension ShadowRecord {
    /// The record as predicates see it: its fields, plus CloudKit's system fields under each of
    /// their names.
    ///
    /// A stored field never replaces a system field of the same name.
    package var image: RecordImage {
        RecordImage(judgedFields, completeness: isPartial ? .partial : .full)
    }

    /// The fields as conditions and sort orders see them, with CloudKit's system fields in place of
    /// stored fields of the same names.
    ///
    /// A system field that the relay does not know is absent, whatever a source's database has in a
    /// column of that name.
    package var judgedFields: RecordFields {
        var judged = fields
        for field in SystemField.allCases {
            let value = value(of: field)
            for name in field.names { judged[name] = value }
        }
        return judged
    }

    /// CloudKit's system fields, under their names in the native class, the web service and the
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
