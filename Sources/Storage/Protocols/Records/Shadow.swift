package import RelayModel

/// A container's kept records (the last known versions of records), their zones, and the schema.
///
/// Every change of a kept record is appended to the log in the same transaction and fires like any
/// other change. A source's change updates the kept record in the transaction that appends it.
package protocol Shadow: Sendable {
    // MARK: Schema

    /// Returns the schema of a container, cached in memory; empty if there is none.
    func schema(of container: ContainerKey) async throws -> ContainerSchema
    /// Adds missing record types and fields, leaving existing ones unchanged.
    func extendSchema(
        of container: ContainerKey, with additions: [RecordTypeDefinition]
    ) async throws
    /// Replaces the schema by what `change` makes of it, in one transaction.
    ///
    /// So `change` sees what other callers changed until then, and may be called more than once.
    /// Records of types that the new schema does not have or does not keep are deleted. The log
    /// says so once for each type.
    func changeSchema(
        of container: ContainerKey, at now: Timestamp,
        _ change: @escaping @Sendable (ContainerSchema) -> ContainerSchema
    ) async throws

    // MARK: Records

    /// Applies the operations of one request in order, adds `additions` to the schema, and appends
    /// each change to the log, in one transaction.
    ///
    /// Records that refer to a deleted record by `DELETE_SELF` are deleted before it, as far as
    /// `room` allows. A deletion that is unfinished then continues when the client repeats it and
    /// the operations after it.
    func modify(
        _ edits: [RecordEdit], in place: RecordPlace, by editor: RecordEditor,
        atomicity: EditAtomicity, additions: [RecordTypeDefinition], within room: CascadeRoom,
        at now: Timestamp
    ) async throws -> RecordEditsApplied
    /// Returns the live records of all types with these names, in any order.
    ///
    /// Reading stops after about `bytes` bytes of stored text; `unread` has the remaining names.
    func records(
        named ids: [RecordID], in place: RecordPlace, bytes: Int
    ) async throws -> (records: [ShadowRecord], unread: Set<RecordID>)
    /// Folds a slice of the live records of one type; `step` returns `false` to end it.
    ///
    /// Slices of all containers take turns, and never occupy all the readers.
    func scanRecords<Value: Sendable>(
        _ scan: RecordScan, into initial: Value,
        _ step: @escaping @Sendable (inout Value, ScannedRecord) throws -> Bool
    ) async throws -> RecordSlice<Value>
    /// Returns the changes in each of several zones, in the order of the questions, and the zones
    /// themselves, all as of one commit.
    ///
    /// The pages together have about `bytes` bytes of stored text. Pages for which no room is left
    /// are empty and have more.
    func recordChanges(
        in zones: [ZoneChangesQuestion], of place: RecordPlace, bytes: Int
    ) async throws -> [ZoneChanges]

    // MARK: Zones

    /// Returns several zones in this order, deleted or not; `nil` for one that never existed.
    func zones(_ zoneIDs: [ZoneID], of place: RecordPlace) async throws -> [ZoneMark?]
    /// Returns the existing zones of a database after `zoneID`, ordered by owner and name.
    func zonePage(
        of place: RecordPlace, after zoneID: ZoneID?, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark>
    /// Returns the zones of a database that changed since `since`, including deleted ones, in the
    /// order of their edits, after the edit number `edit`.
    func zoneChanges(
        of place: RecordPlace, since: ZoneHead, after edit: UInt64, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark>
    /// Returns how far the zones of a database have changed.
    func zoneHead(of place: RecordPlace) async throws -> ZoneHead
    /// Creates the zones that do not exist, and returns all of them.
    func createZones(_ zones: [ZoneID], in place: RecordPlace) async throws -> [ZoneMark]
    /// Deletes at most `limit` records of a zone, each as a change that fires, and then the zone if
    /// it has no more, continuing where an earlier part stopped at `begun`.
    func deleteZone(
        _ zoneID: ZoneID, in place: RecordPlace, by editor: RecordEditor, limit: Int,
        from begun: ZoneDeletionPlace?, at now: Timestamp
    ) async throws -> ZoneDeletion
}

/// How far the deletion of a zone has come.
package enum ZoneDeletion: Sendable, Hashable {
    /// The zone does not exist.
    case unknown
    /// Records were deleted, and there may be more; `nil` if the zone's own were not begun yet.
    case begun(ZoneDeletionPlace?)
    /// The zone and its records are deleted; a zone of the same name is another one.
    case done
}

/// The place at which a partial deletion of a zone continues.
package struct ZoneDeletionPlace: Sendable, Hashable {
    /// The edit number of the zone's creation, which changes if the zone is created again.
    package let edit: UInt64
    /// If a record with referrers by `DELETE_SELF` was begun, the path from it; `nil` otherwise.
    package let path: [RecordName]?

    package init(edit: UInt64, path: [RecordName]?) {
        self.edit = edit
        self.path = path
    }
}

/// One database of one container, in which records lie.
package struct RecordPlace: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The kind of database.
    package var database: DatabaseScope
    /// The user who owns the database; `nil` for the public one.
    package var owner: UserID?

    package init(container: ContainerKey, database: DatabaseScope, owner: UserID?) {
        self.container = container
        self.database = database
        self.owner = owner
    }
}

/// The party that changes records.
package struct RecordEditor: Sendable, Hashable {
    /// The user; `nil` if the client is not signed in.
    package var userID: UserID?
    /// Whether the editor is a server of the application, which may write what others created.
    package var isServer: Bool

    package init(userID: UserID?, isServer: Bool) {
        self.userID = userID
        self.isServer = isServer
    }
}

/// When, by whom and on which device a record was created or changed.
package struct RecordStamp: Sendable, Hashable {
    /// The moment.
    package var at: Timestamp
    /// The user, if known.
    package var userID: UserID?
    /// The device, if known.
    package var deviceID: DeviceID?

    package init(at: Timestamp, userID: UserID?, deviceID: DeviceID?) {
        self.at = at
        self.userID = userID
        self.deviceID = deviceID
    }
}

/// The last version of a record.
package struct ShadowRecord: Sendable, Hashable {
    /// The ID of the record.
    package var recordID: RecordID
    /// The record type.
    package var recordType: RecordType
    /// The fields; none if the record was deleted.
    package var fields: RecordFields
    /// Whether the record lacks fields that the source never sent.
    package var isPartial = false
    /// What CloudKit's field dictionaries contain beyond the values, by field.
    package var wire: JSONObject = [:]
    /// The users who may read the record; `nil` means the default of its database.
    package var readers: [String]?
    /// The creation of the record.
    package var created: RecordStamp
    /// The last change of the record.
    package var modified: RecordStamp
    /// The change source that wrote the record last.
    package var source: SourceName
    /// The position of its last change.
    package var position: LogPosition
    /// Whether the record is deleted.
    package var isDeleted = false

    package init(
        recordID: RecordID, recordType: RecordType, fields: RecordFields, wire: JSONObject = [:],
        readers: [String]? = nil, created: RecordStamp, modified: RecordStamp, source: SourceName,
        position: LogPosition
    ) {
        self.recordID = recordID
        self.recordType = recordType
        self.fields = fields
        self.wire = wire
        self.readers = readers
        self.created = created
        self.modified = modified
        self.source = source
        self.position = position
    }

    /// CloudKit's record change tag, which differs after each change.
    ///
    /// It contains the moment, because a restored store reuses positions for other changes.
    package var changeTag: String {
        let moment = UInt64(bitPattern: modified.at.milliseconds)
        return "\(String(position.rawValue, radix: 36))-\(String(moment, radix: 36))"
    }

    /// Returns whether `user`, who names no type, means this record and not `other`.
    ///
    /// In the public database, the user's own record comes first, then one of a source. So no user
    /// can put a record in the place of another one for the other users. Among equals, the record
    /// that was changed last is meant.
    package func isMeant(
        over other: ShadowRecord, by user: UserID?, in database: DatabaseScope
    ) -> Bool {
        let ranks = (rank(for: user), other.rank(for: user))
        return database == .public && ranks.0 != ranks.1
            ? ranks.0 > ranks.1 : position > other.position
    }

    private func rank(for user: UserID?) -> Int {
        guard source == .cloudKit else { return 1 }
        return user != nil && created.userID == user ? 2 : 0
    }
}

/// One operation on a record.
package struct RecordEdit: Sendable, Hashable {
    /// CloudKit's operation types.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case create, update, forceUpdate, replace, forceReplace, delete, forceDelete
    }

    /// The kind of operation.
    package var kind: Kind
    /// The ID of the record.
    package var recordID: RecordID
    /// The record type; a deletion may omit it.
    package var recordType: RecordType?
    /// The change tag of the version that the client saw.
    package var changeTag: String?
    /// The given fields; `null` removes a field.
    package var fields: RecordFields = [:]
    /// What the field dictionaries contain beyond the values.
    package var wire: JSONObject = [:]
    /// Whether users who did not create the record may write it.
    package var isWritableByAll = false
    /// The types whose records such users may write if the operation names no type that counts.
    package var typesWritableByAll: Set<RecordType> = []
    /// The users who may read the record, if not everybody.
    package var readers: [String]?
    /// The device that makes the change.
    package var deviceID: DeviceID?
    /// Whether the record stores the device of the change, which it does not for a browser page.
    package var stampsDevice = true
    /// Whether the caller may create a record where none exists.
    package var mayCreate = true
    /// The records that must exist, because a reference with validation refers to them.
    package var validated: [RecordID] = []
    /// The client's own `modified` stamp; one that repeats the stored stamp names no new device.
    package var statedStamp: RecordStamp?

    package init(_ kind: Kind, _ recordID: RecordID, type: RecordType?) {
        self.kind = kind
        self.recordID = recordID
        recordType = type
    }
}

/// The outcome of one operation on a record.
package enum RecordEditOutcome: Sendable, Hashable {
    /// The record was saved as this version.
    case saved(ShadowRecord)
    /// The record does not exist any more.
    case deleted(RecordID)
    /// The operation was refused.
    case refused(RecordRefusal)
    /// The operation would have succeeded, but another operation of the atomic request was refused.
    case undone
}

/// The reason why an operation on a record is refused.
package enum RecordRefusal: Sendable, Hashable {
    /// The record does not exist.
    case notFound
    /// The zone does not exist.
    case zoneNotFound
    /// A record with this name exists; `nil` if earlier refusals have used up the answer's room.
    case exists(ShadowRecord?)
    /// The record was changed since the client saw it; `nil` as for `exists`.
    case conflict(ShadowRecord?)
    /// An update must name the version that it is based on.
    case tagRequired
    /// The record exists with another type.
    case otherType(RecordType)
    /// A new record needs a type.
    case typeRequired
    /// Another user created the record, and the editor may not write it.
    case notWritable
    /// The caller may not create records of this type.
    case notCreatable(RecordType)
    /// The additions would make the record larger than a record may be.
    case tooLarge
    /// The user or the container has reached a quota.
    case overQuota(QuotaRefusal)
    /// More records refer to the record by `DELETE_SELF` than are deleted along at once.
    case unfinished
    /// The operations before it have already changed as many bytes of records as one request may.
    case tooMuchAtOnce(bytes: Int)
    /// Operations before it were applied, but a limit now refuses changes.
    case bounded(IntakeBound, reason: String)
    /// A reference with validation has no target.
    case missingReference(RecordID)
}

/// How far the records and zones of a database have changed.
package struct ZoneHead: Sendable, Hashable {
    /// The position of the last change of a record in any zone.
    package var position: LogPosition
    /// The edit number of the last creation or deletion of a zone.
    package var edit: UInt64
    /// The edit number up to which marks of deleted zones may be pruned.
    package var prunedEdit: UInt64

    /// The head of a database without zones.
    package static let start = ZoneHead(position: .start, edit: 0)

    package init(position: LogPosition, edit: UInt64, prunedEdit: UInt64 = 0) {
        self.position = position
        self.edit = edit
        self.prunedEdit = prunedEdit
    }
}

extension SourceName {
    /// The change source of changes that CloudKit clients make in the relay.
    ///
    /// An administrator cannot take the name: one that begins with an underscore is refused.
    package static let cloudKit: SourceName = {
        guard let name = SourceName(rawValue: "_cloudkit") else {
            preconditionFailure("_cloudkit is a source name")
        }
        return name
    }()
}

extension Shadow {
    /// Replaces the schema, whatever it was.
    package func replaceSchema(
        of container: ContainerKey, with schema: ContainerSchema, at now: Timestamp
    ) async throws {
        try await changeSchema(of: container, at: now) { _ in schema }
    }

    /// Applies operations in as many parts as the cascading deletions need.
    package func modify(
        _ edits: [RecordEdit], in place: RecordPlace, by editor: RecordEditor,
        atomicity: EditAtomicity, additions: [RecordTypeDefinition], at now: Timestamp
    ) async throws -> [RecordEditOutcome] {
        let isAtomic = atomicity == .allOrNothing
        var outcomes: [RecordEditOutcome] = []
        var room = isAtomic ? CascadeRoom.atOnce : CascadeRoom(part: CascadeRoom.mostOfPart)
        while outcomes.count < edits.count {
            let applied = try await modify(
                Array(edits[outcomes.count...]), in: place, by: editor, atomicity: atomicity,
                additions: additions, within: room, at: now)
            outcomes += applied.outcomes.prefix { isAtomic || !$0.isUnfinished }
            room = CascadeRoom(part: CascadeRoom.mostOfPart, from: applied.place)
        }
        return outcomes
    }

    /// Returns the live records with these names, whatever their size; meant for few names.
    package func records(
        named ids: [RecordID], in place: RecordPlace
    ) async throws -> [ShadowRecord] {
        try await records(named: ids, in: place, bytes: .max).records
    }
}
