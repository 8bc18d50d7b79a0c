/// Zones in a user's own private database are answered with that user as their owner, and clients
/// send them back with or without an owner.
///
/// Both forms mean the same zone, so the owner is dropped when a zone comes in.
extension DatabaseScope {
    /// Returns the owner that a zone of this database has implicitly: the user in a private
    /// database, otherwise `nil`.
    public func impliedOwner(_ user: UserID?) -> UserID? {
        self == .private ? user : nil
    }
}

extension ZoneID {
    /// Returns the zone without its owner if the owner is `owner`; otherwise the zone unchanged.
    public func implying(_ owner: UserID?) -> ZoneID {
        guard let owner, ownerRecordName == owner else { return self }
        return ZoneID(zoneName: zoneName) ?? self
    }
}

extension RecordID {
    /// Returns the record with its zone's owner dropped if that is `owner`.
    public func implying(_ owner: UserID?) -> RecordID {
        RecordID(recordName: recordName, zoneID: zoneID.implying(owner))
    }
}

extension FieldValue {
    /// Returns the value with `owner` dropped from the zones of all references in it.
    public func implying(_ owner: UserID?) -> FieldValue {
        guard let owner else { return self }
        switch self {
        case .reference(let reference):
            return .reference(RecordReference(reference.recordID.implying(owner)))
        case .list(let values): return .list(values.map { $0.implying(owner) })
        case .set(let values): return .set(Set(values.map { $0.implying(owner) }))
        case .map(let members): return .map(members.mapValues { $0.implying(owner) })
        default: return self
        }
    }
}

extension RecordChange {
    /// The change with the database owner dropped from its own zone and from its references.
    public var withOwnZonesImplied: RecordChange {
        var change = self
        if let former = movedFrom, let owner = former.database.impliedOwner(former.owner) {
            change.movedFrom?.recordID = former.recordID.implying(owner)
        }
        guard let owner = database.impliedOwner(owner) else { return change }
        change.recordID = recordID.implying(owner)
        change.before?.implyOwner(owner)
        change.after?.implyOwner(owner)
        return change
    }
}

extension RecordImage {
    mutating func implyOwner(_ owner: UserID) {
        fields = fields.mapValues { $0.implying(owner) }
    }
}
