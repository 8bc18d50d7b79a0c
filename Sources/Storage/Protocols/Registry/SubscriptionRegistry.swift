package import RelayModel

/// Who wants to be told of what: users' subscriptions, and those that ended by themselves.
///
/// Subscriptions are kept as versions. A version begins and ends at log positions, so that what was
/// active at any position not yet settled can be told exactly.
package protocol SubscriptionRegistry: Sendable {
    /// Applies the operations of one request in order, in one transaction, and appends each edit to
    /// the log.
    ///
    /// With ``EditAtomicity/allOrNothing`` a single refusal undoes everything; the others then
    /// answer ``SubscriptionEditOutcome/undone``.
    func edit(
        _ edits: [SubscriptionEdit], of owner: SubscriptionOwner, atomicity: EditAtomicity,
        at now: Timestamp
    ) async throws -> [SubscriptionEditOutcome]
    /// The active subscriptions of one owner, ordered by ID.
    func subscriptions(of owner: SubscriptionOwner) async throws -> [SubscriptionVersion]
    /// The subscriptions of one owner that ended because their conditions took too many steps,
    /// until they are saved anew or deleted; ordered by ID.
    func disabledSubscriptions(of owner: SubscriptionOwner) async throws -> [DisabledSubscription]
    /// The same of a container, or of one user of it, by ascending serial.
    func disabledPage(
        of container: ContainerKey, user: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DisabledSubscription>
    /// The active subscriptions of one owner with IDs after `id`, ordered by ID.
    func subscriptionPage(
        of owner: SubscriptionOwner, after id: SubscriptionID?, _ bounds: PageBounds
    ) async throws -> Page<SubscriptionVersion>
    /// The active subscriptions of a container, or of one user of it, by ascending serial.
    func subscriptionPage(
        of container: ContainerKey, user: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<SubscriptionVersion>
    /// How the versions with these serials have fared; nothing of those of which there is nothing
    /// to say.
    func health(of serials: Set<UInt64>) async throws -> [UInt64: SubscriptionHealth]
    /// The active subscription with this ID; `nil` if there is none.
    func subscription(
        _ id: SubscriptionID, of owner: SubscriptionOwner
    ) async throws -> SubscriptionVersion?
    /// Those of one owner's active subscriptions that have one of these IDs, in any order.
    ///
    /// Reading stops after about `bytes` bytes of stored text; the IDs of the others are unread.
    func subscriptions(
        named ids: [SubscriptionID], of owner: SubscriptionOwner, bytes: Int
    ) async throws -> (found: [SubscriptionVersion], unread: Set<SubscriptionID>)
}

/// Whether a refused operation undoes its neighbours.
package enum EditAtomicity: Sendable, Hashable {
    /// Each operation stands for itself.
    case independent
    /// All are applied, or none.
    case allOrNothing
}

/// One operation on subscriptions.
package enum SubscriptionEdit: Sendable, Hashable {
    /// Saves a new subscription. The same ID with the same content again succeeds (idempotent); the
    /// same content under another ID is refused.
    case create(Subscription)
    /// Replaces the subscription with the same ID.
    case update(Subscription)
    /// Deletes the subscription with this ID.
    case delete(SubscriptionID)
}

/// What became of one operation.
package enum SubscriptionEditOutcome: Sendable, Hashable {
    /// It is saved; every change after the version's activation position is judged.
    case saved(SubscriptionVersion)
    /// The same was saved before; nothing changed.
    case unchanged(SubscriptionVersion)
    /// It is deleted.
    case deleted(SubscriptionID)
    /// There is none with this ID.
    case notFound(SubscriptionID)
    /// A subscription with this ID and other content exists.
    case exists(SubscriptionID)
    /// The same content is saved under `existing`.
    case duplicate(of: SubscriptionID)
    /// The user or the container has as much as a quota allows.
    case overQuota(QuotaRefusal)
    /// It would have been applied, but another operation of the atomic request was refused.
    case undone
}
