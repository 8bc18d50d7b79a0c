package import PredicateLanguage
package import RelayModel

/// The parts of a saved subscription that the index needs.
package struct IndexedSubscription: Sendable {
    /// The serial of its version in the registry; serials ascend in the order of saving.
    package var serial: UInt64
    /// The database of the request that saved it.
    package var database: DatabaseScope
    /// The user who saved it.
    ///
    /// In a private or shared database, only changes in that user's database count.
    package var owner: UserID
    /// The zone to which it is limited; `nil` if it is not.
    package var zoneID: ZoneID?
    /// The record type to which it is limited; `nil` if it is not.
    package var recordType: RecordType?
    /// The kinds of change on which it fires.
    package var firesOn: FiresOn
    /// The condition; `nil` fires on every change in the scope, as zone and database subscriptions
    /// do.
    package var predicate: RecordPredicate?

    /// Creates the index's description of a subscription.
    package init(
        serial: UInt64, database: DatabaseScope, owner: UserID, zoneID: ZoneID? = nil,
        recordType: RecordType? = nil, firesOn: FiresOn = .all, predicate: RecordPredicate? = nil
    ) {
        self.serial = serial
        self.database = database
        self.owner = owner
        self.zoneID = zoneID
        self.recordType = recordType
        self.firesOn = firesOn
        self.predicate = predicate
    }
}

/// The expected cost of a saved predicate.
package struct MatchingCost: Sendable, Hashable {
    /// The share of its record type's changes for which it must be verified, from 0 to 1.
    ///
    /// The share is learned from past changes if there were enough, and estimated otherwise. For a
    /// new key that is crowded already, the estimate is the worst case, 1.
    package var candidatesPerChange: Double
    /// Whether it has no key of its own and is verified for every change of its record type.
    package var isResidual: Bool
    /// The number of keys under which it is filed.
    package var keys: Int
    /// The number of other postings that are verified under its most crowded key; 0 if it shares a
    /// posting there or needs no verification.
    ///
    /// The subscription that it replaces does not count.
    package var crowd: Int
    /// Whether it would be verified only where the subscription that it replaces has a posting of
    /// its own, so that an edit adds no verifications.
    package var isInPlace = false
    /// The number of its comparisons that only the evaluator can judge, because the conditions of
    /// the record type use too many fields already.
    package var unplaced: Int

    package init(
        candidatesPerChange: Double, isResidual: Bool, keys: Int, crowd: Int = 0, unplaced: Int = 0
    ) {
        self.candidatesPerChange = candidatesPerChange
        self.isResidual = isResidual
        self.keys = keys
        self.crowd = crowd
        self.unplaced = unplaced
    }
}
