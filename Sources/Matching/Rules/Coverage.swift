package import RelayModel

/// What of a change lies outside of what a subscription watches (docs/firing-rules.md).
package enum CoverageMiss: Sendable, Hashable {
    /// It asks for other operations.
    case operation
    /// It is in another database.
    case database
    /// It is in another user's database.
    case owner
    /// It is in another zone.
    case zone
    /// It is of another record type.
    case recordType
}

extension IndexedSubscription {
    /// What of `change` lies outside of what it watches; nothing if it watches the change.
    package func misses(of change: RecordChange) -> [CoverageMiss] {
        var misses: [CoverageMiss] = []
        if !firesOn.contains(FiresOn(change.operation)) { misses.append(.operation) }
        if database != change.database {
            misses.append(.database)
        } else if change.database != .public, owner != change.owner {
            misses.append(.owner)
        }
        if let zoneID, zoneID != change.recordID.zoneID { misses.append(.zone) }
        if let recordType, recordType != change.recordType { misses.append(.recordType) }
        return misses
    }

    /// Whether it watches `change`.
    package func covers(_ change: RecordChange) -> Bool { misses(of: change).isEmpty }
}
