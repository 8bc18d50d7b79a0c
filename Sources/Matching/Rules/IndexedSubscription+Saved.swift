import PredicateLanguage
package import RelayModel

extension IndexedSubscription {
    /// Reads the condition of a saved subscription.
    ///
    /// - Throws: ``PredicateLanguage/PredicateError`` if it cannot be read.
    package init(_ subscription: Subscription, serial: UInt64) throws {
        var predicate: RecordPredicate?
        if case .query(let query, _) = subscription.scope {
            predicate = try query.recordPredicate(
                implying: subscription.database.impliedOwner(subscription.owner))
        }
        self.init(
            serial: serial, database: subscription.database, owner: subscription.owner,
            zoneID: subscription.zoneID, recordType: subscription.recordType,
            firesOn: subscription.firesOn, predicate: predicate)
    }
}
