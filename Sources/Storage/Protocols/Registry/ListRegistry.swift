package import RelayModel

/// Lists of what there is, the newest first, for whoever operates a relay.
///
/// What a list is narrowed by is found by an index where there are many; for the rest a bounded
/// number of rows is looked at for each page, and a page that found little says where to go on.
package protocol ListRegistry: Sendable {
    /// Changes of the log before a position.
    func listedChanges(
        of container: ContainerKey, _ filter: ChangeListFilter, before: LogPosition?,
        _ bounds: PageBounds
    ) async throws -> ListPage<PastChange, LogPosition>
    /// Parked changes before a number, of one source where it is named.
    func listedParked(
        of container: ContainerKey, source: SourceName?, before: UInt64?, _ bounds: PageBounds
    ) async throws -> ListPage<ParkedChange, UInt64>
    /// Deliveries that wait to be tried again, by the position of their change.
    func listedRetries(
        of container: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds
    ) async throws -> ListPage<Retry, DeliveryListPlace>
    /// Dead letters, by the moment at which they became that.
    func listedDeadLetters(
        of container: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DeadLetter, DeliveryListPlace>
    /// Receipts, by when they were settled.
    func listedReceipts(
        _ filter: ReceiptListFilter, before: ReceiptPlace?, _ bounds: PageBounds
    ) async throws -> ListPage<DeliveryReceipt, ReceiptPlace>
    /// Active subscriptions before a serial.
    func listedSubscriptions(
        of container: ContainerKey, _ filter: SubscriptionListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<SubscriptionVersion, UInt64>
    /// Subscriptions that were disabled, before a serial.
    func listedDisabled(
        of container: ContainerKey, _ filter: SubscriptionListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DisabledSubscription, UInt64>
    /// Active devices before a serial.
    func listedDevices(
        of container: ContainerKey, _ filter: DeviceListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DeviceVersion, UInt64>

    /// Where the newest changes of a record stand, at most `limit`; of every type if none is named.
    func positions(
        ofRecord name: RecordName, _ type: RecordType?, in container: ContainerKey, limit: Int
    ) async throws -> [LogPosition]
    /// The serials of a user's versions of subscriptions or devices, ended ones included; of those
    /// with one ID where it is named.
    func serials(
        of user: UserID, in container: ContainerKey, _ which: NamedVersions, limit: Int
    ) async throws -> [UInt64]
    /// What the versions with these serials are called, as far as that is still known.
    func names(
        subscriptions: Set<UInt64>, devices: Set<UInt64>
    ) async throws -> VersionNames
}

extension ListRegistry {
    /// The newest change of a container that a source sent, however many others came after it.
    package func newestChange(
        of container: ContainerKey, from source: SourceName
    ) async throws -> PastChange? {
        var filter = ChangeListFilter()
        filter.source = source
        var before: LogPosition?
        while true {
            let page = try await listedChanges(
                of: container, filter, before: before, PageBounds(rows: 1))
            if let newest = page.elements.first { return newest }
            guard let next = page.next else { return nil }
            try Task.checkCancellation()
            before = next
        }
    }
}

/// A page of a list, and where the next one begins.
package struct ListPage<Element: Sendable, Place: Sendable>: Sendable {
    /// The elements, in order.
    package var elements: [Element]
    /// The place before which the list goes on; `nil` at its end.
    package var next: Place?

    package init(_ elements: [Element], next: Place?) {
        self.elements = elements
        self.next = next
    }
}

/// Which changes are listed.
package struct ChangeListFilter: Sendable, Hashable {
    /// Those of one record type.
    package var recordType: RecordType?
    /// Those of records with one name.
    package var recordName: RecordName?
    /// Those that a source sent.
    package var source: SourceName?
    /// Those in a user's own database, or made by that user.
    package var user: UserID?
    /// Those that came too late, or those that did not.
    package var isStale: Bool?

    /// Lets everything pass.
    package init() {}

    /// Whether a change is one of them.
    package func isMet(by past: PastChange) -> Bool {
        guard let change = past.change else {
            return recordType == nil && recordName == nil && user == nil
                && source.map { $0 == past.source } ?? true
                && isStale.map { $0 == past.isStale } ?? true
        }
        return recordType.map { $0 == change.recordType } ?? true
            && recordName.map { $0 == change.recordID.recordName } ?? true
            && source.map { $0 == past.source } ?? true
            && isStale.map { $0 == past.isStale } ?? true
            && user.map { $0 == change.owner || $0 == change.origin.userID } ?? true
    }
}

/// Which of the deliveries that did not simply succeed are listed.
package struct DeliveryListFilter: Sendable, Hashable {
    /// Those of one user.
    package var user: UserID?
    /// Those of a subscription of that user.
    package var subscription: SubscriptionID?
    /// Those of a device of that user.
    package var device: DeviceID?
    /// Those with one reason.
    package var reason: String?
    /// Those of the changes at these positions.
    package var positions: Set<LogPosition>?
    /// Those of changes of one record type.
    package var recordType: RecordType?

    /// Lets everything pass.
    package init() {}

    /// Whether a delivery is one of them, as far as the delivery says it.
    package func isMet(by delivery: Delivery) -> Bool {
        user.map { $0 == delivery.owner } ?? true
            && subscription.map { $0 == delivery.subscriptionID } ?? true
            && device.map { $0 == delivery.deviceID } ?? true
            && positions.map { $0.contains(delivery.ordinal.position) } ?? true
    }
}

/// A place among deliveries in the order of positions, or of moments.
package struct DeliveryListPlace: Sendable, Hashable {
    /// The position, or the moment in nanoseconds since 1970.
    package var order: Int64
    /// Between those that have it in common.
    package var delivery: DeliveryID

    package init(order: Int64, delivery: DeliveryID) {
        self.order = order
        self.delivery = delivery
    }
}

/// Which receipts are listed.
package struct ReceiptListFilter: Sendable, Hashable {
    /// Those of one container's devices, as far as the devices are known still.
    package var container: ContainerKey?
    /// What a receipt itself says.
    package var receipt = ReceiptFilter()
    /// Those of changes at these positions.
    package var positions: Set<LogPosition>?
    /// Those of versions of subscriptions with these serials.
    package var subscriptions: Set<UInt64>?
    /// Those of versions of devices with these serials.
    package var devices: Set<UInt64>?

    /// Lets everything pass.
    package init() {}
}

/// A place among the receipts: a block, and how many of its receipts were looked at.
package struct ReceiptPlace: Sendable, Hashable {
    /// The number of the block's row.
    package var block: Int64
    /// How many receipts of the block were looked at, from the newest back.
    package var seen: Int

    package init(block: Int64, seen: Int) {
        self.block = block
        self.seen = seen
    }
}

/// Which subscriptions are listed.
package struct SubscriptionListFilter: Sendable, Hashable {
    /// Those of one user.
    package var user: UserID?
    /// Those on records of one type.
    package var recordType: RecordType?

    /// Lets everything pass.
    package init() {}
}

/// Which devices are listed.
package struct DeviceListFilter: Sendable, Hashable {
    /// Those of one user.
    package var user: UserID?
    /// Those with one ID.
    package var device: DeviceID?

    /// Lets everything pass.
    package init() {}
}

/// Which of a user's versions are meant.
package enum NamedVersions: Sendable, Hashable {
    /// Subscriptions with this ID, in any database.
    case subscriptions(SubscriptionID)
    /// Devices; those with this ID where it is named.
    case devices(DeviceID?)
}

/// What versions are called, by serial.
package struct VersionNames: Sendable, Hashable {
    /// A subscription, and whose it is.
    package struct Subscription: Sendable, Hashable {
        package var id: SubscriptionID
        package var owner: UserID

        package init(id: SubscriptionID, owner: UserID) {
            self.id = id
            self.owner = owner
        }
    }

    /// Subscriptions.
    package var subscriptions: [UInt64: Subscription] = [:]
    /// Devices.
    package var devices: [UInt64: DeviceID] = [:]

    /// Knows of none.
    package init() {}
}
