package import RelayModel

/// A reason why a change is outside of what a subscription watches (docs/firing-rules.md).
package enum CoverageMiss: Sendable, Hashable {
    /// The subscription asks for other operations.
    case operation
    /// The change is in another database.
    case database
    /// The change is in another user's database.
    case owner
    /// The change is in another zone.
    case zone
    /// The change is of another record type.
    case recordType
}

extension IndexedSubscription {
    /// Returns the reasons why the subscription does not watch `change`; empty if it does.
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

    /// Returns whether the subscription watches `change`.
    package func covers(_ change: RecordChange) -> Bool { misses(of: change).isEmpty }
}
