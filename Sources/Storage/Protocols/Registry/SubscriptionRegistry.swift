package import RelayModel

/// Users' subscriptions, and those that the relay disabled.
///
/// Subscriptions are kept as versions. A version begins and ends at log positions, so that what was
/// active at any unsettled position can be determined exactly.
package protocol SubscriptionRegistry: Sendable {
    /// Applies the operations of one request in order, in one transaction, and appends each edit to
    /// the log.
    ///
    /// With ``EditAtomicity/allOrNothing`` a single refusal undoes everything, and the other
    /// outcomes are ``SubscriptionEditOutcome/undone``.
    func edit(
        _ edits: [SubscriptionEdit], of owner: SubscriptionOwner, atomicity: EditAtomicity,
        at now: Timestamp
    ) async throws -> [SubscriptionEditOutcome]
    /// Returns the active subscriptions of one owner, ordered by ID.
    func subscriptions(of owner: SubscriptionOwner) async throws -> [SubscriptionVersion]
    /// Returns the subscriptions of one owner that were disabled because their conditions took too
    /// many steps, ordered by ID.
    ///
    /// A subscription is listed until it is saved again or deleted.
    func disabledSubscriptions(of owner: SubscriptionOwner) async throws -> [DisabledSubscription]
    /// Returns a page of the disabled subscriptions of a container or of one of its users, by
    /// ascending serial.
    func disabledPage(
        of container: ContainerKey, user: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DisabledSubscription>
    /// Returns a page of the active subscriptions of one owner with IDs after `id`, ordered by ID.
    func subscriptionPage(
        of owner: SubscriptionOwner, after id: SubscriptionID?, _ bounds: PageBounds
    ) async throws -> Page<SubscriptionVersion>
    /// Returns a page of the active subscriptions of a container or of one of its users, by
    /// ascending serial.
    func subscriptionPage(
        of container: ContainerKey, user: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<SubscriptionVersion>
    /// Returns the health of the versions with these serials, without those that have no events.
    func health(of serials: Set<UInt64>) async throws -> [UInt64: SubscriptionHealth]
    /// Returns the active subscription with this ID, or `nil` if there is none.
    func subscription(
        _ id: SubscriptionID, of owner: SubscriptionOwner
    ) async throws -> SubscriptionVersion?
    /// Returns the active subscriptions of one owner that have one of these IDs, in any order.
    ///
    /// Reading stops after about `bytes` bytes of stored text. `unread` contains the remaining IDs.
    func subscriptions(
        named ids: [SubscriptionID], of owner: SubscriptionOwner, bytes: Int
    ) async throws -> (found: [SubscriptionVersion], unread: Set<SubscriptionID>)
}

/// Whether a refused operation undoes its neighbours.
package enum EditAtomicity: Sendable, Hashable {
    /// Operations do not affect each other.
    case independent
    /// All operations are applied, or none.
    case allOrNothing
}

/// One operation on subscriptions.
package enum SubscriptionEdit: Sendable, Hashable {
    /// Saves a new subscription.
    ///
    /// Repeating it with the same ID and content succeeds without a change; the same content under
    /// another ID is refused.
    case create(Subscription)
    /// Replaces the subscription with the same ID.
    case update(Subscription)
    /// Deletes the subscription with this ID.
    case delete(SubscriptionID)
}

/// The outcome of one operation.
package enum SubscriptionEditOutcome: Sendable, Hashable {
    /// The subscription was saved, and judges every change after the version's activation position.
    case saved(SubscriptionVersion)
    /// The same subscription was saved before.
    ///
    /// Nothing changed.
    case unchanged(SubscriptionVersion)
    /// The subscription was deleted.
    case deleted(SubscriptionID)
    /// No subscription has this ID.
    case notFound(SubscriptionID)
    /// A subscription with this ID and other content exists.
    case exists(SubscriptionID)
    /// The same content is saved under another ID.
    case duplicate(of: SubscriptionID)
    /// The user or the container has reached a quota.
    case overQuota(QuotaRefusal)
    /// The operation would have succeeded, but another operation of the atomic request was refused.
    case undone
}
