package import PredicateLanguage
package import RelayModel

/// What the index keeps of a saved subscription.
package struct IndexedSubscription: Sendable {
    /// Its number in the registry; numbers ascend in the order of saving.
    package var serial: UInt64
    /// The database of the request that saved it.
    package var database: DatabaseScope
    /// Who saved it; in a private or shared database only changes of that user's own are seen.
    package var owner: UserID
    /// The zone to which it is narrowed.
    package var zoneID: ZoneID?
    /// The record type to which it is narrowed.
    package var recordType: RecordType?
    /// The kinds of change on which it fires.
    package var firesOn: FiresOn
    /// The condition; `nil` fires on every change of the scope, as zone and database subscriptions
    /// do.
    package var predicate: RecordPredicate?

    /// Describes a subscription to the index.
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

/// What a saved predicate is expected to cost.
package struct MatchingCost: Sendable, Hashable {
    /// The share of its record type's changes for which it must be looked at, 0 to 1: learned
    /// from past changes where enough were seen, guessed otherwise.
    ///
    /// The guess for a key under which many stand already is the worst, 1.
    package var candidatesPerChange: Double
    /// Whether it has no key of its own and is looked at for every change of its record type.
    package var isResidual: Bool
    /// The keys under which it is filed.
    package var keys: Int
    /// What else has to be verified under the fullest of its keys; 0 if it is not verified by
    /// itself there.
    package var crowd: Int
    /// Its comparisons that only the evaluator judges because the record type's conditions name too
    /// many fields already.
    package var unplaced: Int

    /// States a cost.
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
