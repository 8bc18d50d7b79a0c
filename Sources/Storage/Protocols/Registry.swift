package import RelayModel

/// Who may do what, and who wants to be told: containers, keys, sources, devices, subscriptions.
///
/// Subscriptions and devices are kept as versions. A version begins and ends at log positions, so
/// that what was active at any position not yet settled can be told exactly.
package protocol Registry:
    AdministrationRegistry, CourierQueue, InboxRegistry, SessionRegistry, Sendable
{
    /// Bytes that no other store has, also none that was made of a copy of this one: what clients
    /// keep of one store means nothing in another.
    var storeIdentity: UUIDBytes { get }

    // MARK: Containers, keys, sources

    /// Saves a container's settings, new or not.
    func save(_ container: ContainerSettings, at now: Timestamp) async throws
    /// The settings of one container; `nil` if it is unknown.
    func container(_ key: ContainerKey) async throws -> ContainerSettings?
    /// What a container has of the things that quotas are about.
    func quotaUse(of container: ContainerKey) async throws -> QuotaUse
    /// What containers may have that set nothing of their own.
    var quotas: Quotas { get }
    /// All containers, ordered by name and environment.
    func containers() async throws -> [ContainerSettings]

    /// Saves an access key.
    func save(_ key: AccessKey) async throws
    /// The keys of one container, the newest first, revoked ones included.
    func accessKeys(of container: ContainerKey) async throws -> [AccessKey]
    /// Revokes a key; returns whether there was one to revoke.
    func revokeAccessKey(
        _ id: String, of container: ContainerKey, at now: Timestamp
    )
        async throws -> Bool

    /// Saves a change source's configuration, new or not.
    func save(_ source: StoredSource) async throws
    /// One change source; `nil` if it is unknown.
    func source(_ name: SourceName, of container: ContainerKey) async throws -> StoredSource?
    /// The change sources of one container, ordered by name.
    func sources(of container: ContainerKey) async throws -> [StoredSource]
    /// Deletes a change source; returns whether there was one.
    func deleteSource(_ name: SourceName, of container: ContainerKey) async throws -> Bool

    // MARK: Subscriptions

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
    /// The active subscription with this ID; `nil` if there is none.
    func subscription(
        _ id: SubscriptionID, of owner: SubscriptionOwner
    )
        async throws -> SubscriptionVersion?
    /// The versions active at `position`, by ascending serial, after `serial`, at most `limit`.
    func subscriptions(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    )
        async throws -> [SubscriptionVersion]

    // MARK: Devices

    /// Registers a device and appends the edit to the log. An earlier token of the user's device
    /// ends, and so does every other device with the same token: a token has one live owner. An ID
    /// is its user's: that of another user is another device.
    ///
    /// Where `naming` is that of a client, a web courier and another token may have its name at the
    /// same time: the later one gets an ID of its own then.
    func register(
        _ device: Device, named naming: DeviceNaming, at now: Timestamp
    ) async throws -> DeviceVersion
    /// The active devices of one user, ordered by serial; of every user if `owner` is `nil`.
    func devices(
        of container: ContainerKey, owner: UserID?, limit: Int
    )
        async throws -> [DeviceVersion]
    /// The active devices of a container, or of one user of it, by ascending serial.
    func devicePage(
        of container: ContainerKey, owner: UserID?, after serial: UInt64, _ bounds: PageBounds
    ) async throws -> Page<DeviceVersion>
    /// Ends a user's device, as at sign-out; returns whether there was one. Another user's of the
    /// same ID stays.
    func forgetDevice(
        _ id: DeviceID, of user: UserID, in container: ContainerKey, at now: Timestamp
    )
        async throws -> Bool
    /// The users who have a device of this ID, by name, at most `limit`.
    func holders(
        of id: DeviceID, in container: ContainerKey, limit: Int
    )
        async throws -> [UserID]
    /// The versions active at `position`, by ascending serial, after `serial`, at most `limit`.
    func devices(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    )
        async throws -> [DeviceVersion]
    /// The badges of all devices that have one.
    func badges() async throws -> [BadgeMark]

    // MARK: Parked changes

    /// Parks what a source sent and could not be mapped, durably; returns its number.
    func park(_ change: ParkedChange) async throws -> UInt64
    /// Parked changes by ascending number, after `number`, at most `limit`, and at most a page of
    /// bytes.
    func parkedChanges(
        of container: ContainerKey, after number: UInt64, limit: Int
    )
        async throws -> [ParkedChange]
    /// Deletes a parked change, once it was replayed or given up; returns whether there was one.
    func deleteParkedChange(_ number: UInt64, of container: ContainerKey) async throws -> Bool

    /// How many devices, parked changes, retries and dead letters a container has, each counted up
    /// to `limit`.
    func rowCounts(
        of container: ContainerKey, limit: Int
    ) async throws -> (devices: Int, parked: Int, retries: Int, deadLetters: Int)

    // MARK: Deliveries, for whoever asks

    /// Receipts, the newest first, that satisfy `filter`, at most `limit`.
    func receipts(matching filter: ReceiptFilter, limit: Int) async throws -> [DeliveryReceipt]
    /// Retries by due time, at most `limit`.
    func retries(of container: ContainerKey, limit: Int) async throws -> [Retry]
    /// Dead letters, the newest first, at most `limit`.
    func deadLetters(
        of container: ContainerKey, reason: String?, limit: Int
    )
        async throws -> [DeadLetter]
    /// Turns dead letters into retries that are due at `now`; those that have expired stay.
    func redriveDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?, at now: Timestamp
    ) async throws -> Redriving
    /// Where a delivery lies if it waits or has ended without success; `nil` if it does neither.
    func exception(_ id: DeliveryID) async throws -> DeliveryException?
    /// Those of these deliveries that wait to be tried again.
    func waiting(among ids: [DeliveryID]) async throws -> Set<DeliveryID>
    /// Deletes dead letters; returns how many.
    func dropDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?
    )
        async throws -> Int

    // MARK: Provider tokens

    /// Saves the gateway's current provider token, so that a restart does not mint another.
    func saveProviderToken(_ token: StoredProviderToken) async throws
    /// The saved provider tokens.
    func providerTokens() async throws -> [StoredProviderToken]
}

/// What the ID of a device that is registered names.
package enum DeviceNaming: Sendable, Hashable {
    /// The device: whatever had the ID before ends.
    case device
    /// A client, such as a page, that may have several tokens: no courier of it ends.
    case client
}

extension Registry {
    /// Registers a device by its own ID.
    package func register(_ device: Device, at now: Timestamp) async throws -> DeviceVersion {
        try await register(device, named: .device, at: now)
    }
}
