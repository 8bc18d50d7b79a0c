package import RelayModel

/// The last known version of the records of those types that a container keeps, their zones, and
/// the schema.
///
/// Whatever changes a kept record is appended to the log in the same transaction, and fires as any
/// change does; what a source posts goes into the shadow in the transaction that appends it.
package protocol Shadow: Sendable {
    // MARK: Schema

    /// The schema of a container; empty if there is none. It comes from memory.
    func schema(of container: ContainerKey) async throws -> ContainerSchema
    /// Adds record types and fields that are not there yet; what is there stays as it is.
    func extendSchema(
        of container: ContainerKey, with additions: [RecordTypeDefinition]
    ) async throws
    /// Puts what `change` makes of the schema in its place, in one transaction: whatever somebody
    /// else has added or changed until then is in what it is made of.
    ///
    /// Records of types that the new one does not have, or does not keep, are forgotten; of each
    /// type the log says so once. `change` may be called more than once.
    func changeSchema(
        of container: ContainerKey, at now: Timestamp,
        _ change: @escaping @Sendable (ContainerSchema) -> ContainerSchema
    ) async throws

    // MARK: Records

    /// Applies the operations of one request in order, in one transaction, and appends each change
    /// to the log. `additions` are added to the schema in the same transaction.
    ///
    /// What refers to a deleted record by `DELETE_SELF` goes before it, as far as `room` goes. An
    /// operation that is unfinished then goes on when it is asked for again, as do those after it.
    func modify(
        _ edits: [RecordEdit], in place: RecordPlace, by editor: RecordEditor,
        atomicity: EditAtomicity, additions: [RecordTypeDefinition], within room: CascadeRoom,
        at now: Timestamp
    ) async throws -> RecordEditsApplied
    /// The live records with these names, in any order; of a name that several types have, all.
    ///
    /// Reading stops after about `bytes` bytes of stored text; the names of the others are unread.
    func records(
        named ids: [RecordID], in place: RecordPlace, bytes: Int
    ) async throws -> (records: [ShadowRecord], unread: Set<RecordID>)
    /// Folds a slice of the live records of one type; `step` returns false to end it.
    ///
    /// Slices of all containers take turns, and never have all the readers.
    func scanRecords<Value: Sendable>(
        _ scan: RecordScan, into initial: Value,
        _ step: @escaping @Sendable (inout Value, ScannedRecord) throws -> Bool
    ) async throws -> RecordSlice<Value>
    /// What changed in each of several zones, in the order of the questions, and the zones
    /// themselves: all as of one commit.
    ///
    /// The pages have about `bytes` bytes of stored text together. Those for which no room is left
    /// are empty and have more.
    func recordChanges(
        in zones: [ZoneChangesQuestion], of place: RecordPlace, bytes: Int
    ) async throws -> [ZoneChanges]

    // MARK: Zones

    /// Several zones, in their order, deleted or not; `nil` for one that there never was.
    func zones(_ zoneIDs: [ZoneID], of place: RecordPlace) async throws -> [ZoneMark?]
    /// The zones of a database that are there, after `zoneID`, ordered by owner and name.
    func zonePage(
        of place: RecordPlace, after zoneID: ZoneID?, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark>
    /// The zones of a database that changed since `since`, deleted ones included, in the order of
    /// their edits, after the one with the number `edit`.
    func zoneChanges(
        of place: RecordPlace, since: ZoneHead, after edit: UInt64, _ bounds: PageBounds
    ) async throws -> Page<ZoneMark>
    /// How far the zones of a database have come.
    func zoneHead(of place: RecordPlace) async throws -> ZoneHead
    /// Creates zones; one that is there already stays. Returns the zones as they are.
    func createZones(_ zones: [ZoneID], in place: RecordPlace) async throws -> [ZoneMark]
    /// Deletes at most `limit` records of a zone, each of which fires, and the zone once it has
    /// fewer; it goes on where the last part of the deletion ended, `begun`.
    func deleteZone(
        _ zoneID: ZoneID, in place: RecordPlace, by editor: RecordEditor, limit: Int,
        from begun: ZoneDeletionPlace?, at now: Timestamp
    ) async throws -> ZoneDeletion
}

/// How far the deletion of a zone has come.
package enum ZoneDeletion: Sendable, Hashable {
    /// There is no such zone.
    case unknown
    /// Records of it are gone, and there may be more; `nil` if it was not begun with.
    case begun(ZoneDeletionPlace?)
    /// The zone is gone, and its records; what is there under its name is another zone.
    case done
}

/// Where the deletion of a zone goes on that has come part of the way.
package struct ZoneDeletionPlace: Sendable, Hashable {
    /// The number of the zone's creation: whoever has deleted it meanwhile, and made it anew, has
    /// another one.
    package let edit: UInt64
    /// If a record was begun with that others refer to, by `DELETE_SELF`, the path from it.
    package let path: [RecordName]?

    package init(edit: UInt64, path: [RecordName]?) {
        self.edit = edit
        self.path = path
    }
}

/// One database of one container: where records lie.
package struct RecordPlace: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// Which of its databases.
    package var database: DatabaseScope
    /// Whose it is; `nil` for the public one.
    package var owner: UserID?

    package init(container: ContainerKey, database: DatabaseScope, owner: UserID?) {
        self.container = container
        self.database = database
        self.owner = owner
    }
}

/// Who changes records.
package struct RecordEditor: Sendable, Hashable {
    /// The user; `nil` if nobody is signed in.
    package var userID: UserID?
    /// Whether it is a server of the application's own, which may write what others created.
    package var isServer: Bool

    package init(userID: UserID?, isServer: Bool) {
        self.userID = userID
        self.isServer = isServer
    }
}

/// When, by whom and where a record was created or changed.
package struct RecordStamp: Sendable, Hashable {
    /// When it happened.
    package var at: Timestamp
    /// Who did it, where that is known.
    package var userID: UserID?
    /// The device that it was done on, where that is known.
    package var deviceID: DeviceID?

    package init(at: Timestamp, userID: UserID?, deviceID: DeviceID?) {
        self.at = at
        self.userID = userID
        self.deviceID = deviceID
    }
}

/// The last version of a record.
package struct ShadowRecord: Sendable, Hashable {
    /// Which record.
    package var recordID: RecordID
    /// Its type.
    package var recordType: RecordType
    /// Its fields; none if it was deleted.
    package var fields: RecordFields
    /// Whether fields are missing that the source never sent.
    package var isPartial = false
    /// What CloudKit's dictionaries of fields say beyond the values, by field.
    package var wire: JSONObject = [:]
    /// Who may read it; `nil` means the default of its database.
    package var readers: [String]?
    /// When it came into being.
    package var created: RecordStamp
    /// When it was changed last.
    package var modified: RecordStamp
    /// The change source that wrote it last.
    package var source: SourceName
    /// The position of its last change.
    package var position: LogPosition
    /// Whether it is gone.
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

    /// CloudKit's record change tag: another one after each change.
    ///
    /// The moment is in it because a restored store gives a position to another change.
    package var changeTag: String {
        let moment = UInt64(bitPattern: modified.at.milliseconds)
        return "\(String(position.rawValue, radix: 36))-\(String(moment, radix: 36))"
    }

    /// Whether this record is meant, and not `other` of another type, where `user` names neither.
    ///
    /// In the public database the user's own is, else a database's: nobody puts a record of theirs
    /// in the place of another's for others. Of these it is the one that changed last.
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

    /// What is done.
    package var kind: Kind
    /// Which record.
    package var recordID: RecordID
    /// Its type; a deletion may leave it out.
    package var recordType: RecordType?
    /// The version that the client saw.
    package var changeTag: String?
    /// The fields that are given; `null` removes one.
    package var fields: RecordFields = [:]
    /// What their dictionaries say beyond the values.
    package var wire: JSONObject = [:]
    /// Whether users who did not create the record may write it.
    package var isWritableByAll = false
    /// The types of which they may, where the operation does not say of which its record is, or
    /// says it in vain.
    package var typesWritableByAll: Set<RecordType> = []
    /// Who may read the record, if not everybody.
    package var readers: [String]?
    /// The device that makes the change.
    package var deviceID: DeviceID?
    /// Whether the record tells on which device it was made; a page in a browser is none.
    package var stampsDevice = true
    /// Whether the caller may create a record where there is none.
    package var mayCreate = true
    /// Records that must be there, because a reference validates them.
    package var validated: [RecordID] = []
    /// `modified` as the client sent it: an echo of the stored one names no new device.
    package var statedStamp: RecordStamp?

    package init(_ kind: Kind, _ recordID: RecordID, type: RecordType?) {
        self.kind = kind
        self.recordID = recordID
        recordType = type
    }
}

/// What became of one operation on a record.
package enum RecordEditOutcome: Sendable, Hashable {
    /// It is saved as this.
    case saved(ShadowRecord)
    /// It is gone.
    case deleted(RecordID)
    /// It was refused.
    case refused(RecordRefusal)
    /// It would have been applied, but another operation of the atomic request was refused.
    case undone
}

/// Why an operation on a record is refused.
package enum RecordRefusal: Sendable, Hashable {
    /// There is no such record.
    case notFound
    /// There is no such zone.
    case zoneNotFound
    /// A record of this name exists already; `nil` where those of the refusals before it are as
    /// much as an answer holds.
    case exists(ShadowRecord?)
    /// The record was changed since the client saw it; `nil` as above.
    case conflict(ShadowRecord?)
    /// An update must name the version that it is made of.
    case tagRequired
    /// The record exists with another type.
    case otherType(RecordType)
    /// A record that does not exist yet needs a type.
    case typeRequired
    /// Somebody else created the record.
    case notWritable
    /// The caller may not create records of this type.
    case notCreatable(RecordType)
    /// What it adds would make the record larger than one may be.
    case tooLarge
    /// The user or the container has as much as a quota allows.
    case overQuota(QuotaRefusal)
    /// More refers to the record by `DELETE_SELF` than goes along at once.
    case unfinished
    /// Bytes of records that the operations before it have changed already.
    case tooMuchAtOnce(bytes: Int)
    /// Operations before it were applied, and a bound keeps this one from going in now.
    case bounded(IntakeBound, reason: String)
    /// A reference that validates leads nowhere.
    case missingReference(RecordID)
}

/// How far the zones of a database have come: their records, and they themselves.
package struct ZoneHead: Sendable, Hashable {
    /// The last change of a record in any of them.
    package var position: LogPosition
    /// The number of the last creation or deletion of one.
    package var edit: UInt64
    /// Up to which number deletions may have been forgotten.
    package var prunedEdit: UInt64

    /// Nothing was there.
    package static let start = ZoneHead(position: .start, edit: 0)

    /// Says how far.
    package init(position: LogPosition, edit: UInt64, prunedEdit: UInt64 = 0) {
        self.position = position
        self.edit = edit
        self.prunedEdit = prunedEdit
    }
}

/// One zone as far as the shadow knows it.
package struct ZoneMark: Sendable, Hashable {
    /// The zone.
    package var zoneID: ZoneID
    /// The last change of a record in it.
    package var position: LogPosition
    /// The number of its last creation or deletion, ascending.
    package var edit: UInt64
    /// Whether it is gone.
    package var isDeleted: Bool
    /// Up to where marks of its deleted records may have been forgotten.
    package var prunedTo: LogPosition

    package init(
        zoneID: ZoneID, position: LogPosition, edit: UInt64, isDeleted: Bool,
        prunedTo: LogPosition = .start
    ) {
        self.prunedTo = prunedTo
        self.zoneID = zoneID
        self.position = position
        self.edit = edit
        self.isDeleted = isDeleted
    }
}

extension SourceName {
    /// The change source of what CloudKit's clients change here.
    ///
    /// No administrator can name one so: what begins with an underscore is refused there.
    package static let cloudKit: SourceName = {
        guard let name = SourceName(rawValue: "_cloudkit") else {
            preconditionFailure("_cloudkit is a source name")
        }
        return name
    }()
}

extension Shadow {
    /// Puts a schema in the place of the one before, whatever that is.
    package func replaceSchema(
        of container: ContainerKey, with schema: ContainerSchema, at now: Timestamp
    ) async throws {
        try await changeSchema(of: container, at: now) { _ in schema }
    }

    /// Applies operations, in as many parts as what goes along with their deletions takes.
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

    /// The live records with these names, whatever their size: for few of them.
    package func records(
        named ids: [RecordID], in place: RecordPlace
    ) async throws -> [ShadowRecord] {
        try await records(named: ids, in: place, bytes: .max).records
    }
}
