/// A user's zones in the own private database are answered with the user's name as their owner, and
/// come back with it or without. Both say the same, so one of them is dropped when they come in.
extension DatabaseScope {
    /// Whose name as the owner of a zone says no more than none: the user's, in a private database.
    public func impliedOwner(_ user: UserID?) -> UserID? {
        self == .private ? user : nil
    }
}

extension ZoneID {
    /// The zone without its owner, if that is `owner`.
    public func implying(_ owner: UserID?) -> ZoneID {
        guard let owner, ownerRecordName == owner else { return self }
        return ZoneID(zoneName: zoneName) ?? self
    }
}

extension RecordID {
    /// The record in the zone without its owner, if that is `owner`.
    public func implying(_ owner: UserID?) -> RecordID {
        RecordID(recordName: recordName, zoneID: zoneID.implying(owner))
    }
}

extension FieldValue {
    /// The value whose references lead into zones without an owner, where that is `owner`.
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
    /// The change with its zone and its references as its database means them.
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
