package import RelayModel

/// Lists for operators, newest first.
///
/// Where there can be many elements, an index serves the filter. The remaining conditions are
/// tested on a bounded number of rows for each page. A page with few results says where to
/// continue.
package protocol ListRegistry: Sendable {
    /// Returns changes of the log before a position.
    func listedChanges(
        of container: ContainerKey, _ filter: ChangeListFilter, before: LogPosition?,
        _ bounds: PageBounds
    ) async throws -> ListPage<PastChange, LogPosition>
    /// Returns parked changes before a number, optionally of one source.
    func listedParked(
        of container: ContainerKey, source: SourceName?, before: UInt64?, _ bounds: PageBounds
    ) async throws -> ListPage<ParkedChange, UInt64>
    /// Returns retries, ordered by the position of their change.
    func listedRetries(
        of container: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds
    ) async throws -> ListPage<Retry, DeliveryListPlace>
    /// Returns dead letters, ordered by the moment at which they ended.
    func listedDeadLetters(
        of container: ContainerKey, _ filter: DeliveryListFilter, before: DeliveryListPlace?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DeadLetter, DeliveryListPlace>
    /// Returns receipts, ordered by the moment at which they were settled.
    func listedReceipts(
        _ filter: ReceiptListFilter, before: ReceiptPlace?, _ bounds: PageBounds
    ) async throws -> ListPage<DeliveryReceipt, ReceiptPlace>
    /// Returns active subscriptions before a serial.
    func listedSubscriptions(
        of container: ContainerKey, _ filter: SubscriptionListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<SubscriptionVersion, UInt64>
    /// Returns disabled subscriptions before a serial.
    func listedDisabled(
        of container: ContainerKey, _ filter: SubscriptionListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DisabledSubscription, UInt64>
    /// Returns active devices before a serial.
    func listedDevices(
        of container: ContainerKey, _ filter: DeviceListFilter, before: UInt64?,
        _ bounds: PageBounds
    ) async throws -> ListPage<DeviceVersion, UInt64>

    /// Returns the positions of a record's newest changes, of all types if `type` is `nil`, at most
    /// `limit`.
    func positions(
        ofRecord name: RecordName, _ type: RecordType?, in container: ContainerKey, limit: Int
    ) async throws -> [LogPosition]
    /// Returns the serials of a user's versions of subscriptions or devices, including ended ones,
    /// at most `limit`.
    func serials(
        of user: UserID, in container: ContainerKey, _ which: NamedVersions, limit: Int
    ) async throws -> [UInt64]
    /// Returns the IDs of the versions with these serials, as far as they are still known.
    func names(
        subscriptions: Set<UInt64>, devices: Set<UInt64>
    ) async throws -> VersionNames
}

extension ListRegistry {
    /// Returns the newest change of a container that a source sent, however many changes followed.
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

/// A page of a list, with the place where the next page begins.
package struct ListPage<Element: Sendable, Place: Sendable>: Sendable {
    /// The elements, in order.
    package var elements: [Element]
    /// The place before which the list continues; `nil` at its end.
    package var next: Place?

    package init(_ elements: [Element], next: Place?) {
        self.elements = elements
        self.next = next
    }
}

/// The conditions on listed changes.
///
/// Every property that is set narrows the list.
package struct ChangeListFilter: Sendable, Hashable {
    /// Only changes of this record type.
    package var recordType: RecordType?
    /// Only changes of records with this name.
    package var recordName: RecordName?
    /// Only changes from this source.
    package var source: SourceName?
    /// Only changes in this user's own databases or made by this user.
    package var user: UserID?
    /// Only stale changes if `true`, only others if `false`.
    package var isStale: Bool?

    /// Creates a filter that accepts all changes.
    package init() {}

    /// Returns whether a change satisfies the filter.
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

/// The conditions on listed retries and dead letters.
///
/// Every property that is set narrows the list.
package struct DeliveryListFilter: Sendable, Hashable {
    /// Only deliveries for this user.
    package var user: UserID?
    /// Only deliveries of this subscription of the user.
    package var subscription: SubscriptionID?
    /// Only deliveries to this device of the user.
    package var device: DeviceID?
    /// Only deliveries with this reason.
    package var reason: String?
    /// Only deliveries of the changes at these positions.
    package var positions: Set<LogPosition>?
    /// Only deliveries of changes of this record type.
    package var recordType: RecordType?

    /// Creates a filter that accepts all deliveries.
    package init() {}

    /// Returns whether a delivery satisfies the conditions that the delivery itself can decide.
    package func isMet(by delivery: Delivery) -> Bool {
        user.map { $0 == delivery.owner } ?? true
            && subscription.map { $0 == delivery.subscriptionID } ?? true
            && device.map { $0 == delivery.deviceID } ?? true
            && positions.map { $0.contains(delivery.ordinal.position) } ?? true
    }
}

/// A place among deliveries that are ordered by position or by moment.
package struct DeliveryListPlace: Sendable, Hashable {
    /// The position, or the moment in nanoseconds since 1970.
    package var order: Int64
    /// The delivery ID, which orders deliveries with equal `order`.
    package var delivery: DeliveryID

    package init(order: Int64, delivery: DeliveryID) {
        self.order = order
        self.delivery = delivery
    }
}

/// The conditions on listed receipts.
///
/// Every property that is set narrows the list.
package struct ReceiptListFilter: Sendable, Hashable {
    /// Only receipts of this container's devices, as far as the devices are still known.
    package var container: ContainerKey?
    /// The conditions on the receipt itself.
    package var receipt = ReceiptFilter()
    /// Only receipts of changes at these positions.
    package var positions: Set<LogPosition>?
    /// Only receipts of subscription versions with these serials.
    package var subscriptions: Set<UInt64>?
    /// Only receipts of device versions with these serials.
    package var devices: Set<UInt64>?

    /// Creates a filter that accepts all receipts.
    package init() {}
}

/// A place among the receipts: a block, and the number of its receipts that were read.
package struct ReceiptPlace: Sendable, Hashable {
    /// The number of the block's row.
    package var block: Int64
    /// The number of the block's receipts that were read, starting with the newest.
    package var seen: Int

    package init(block: Int64, seen: Int) {
        self.block = block
        self.seen = seen
    }
}

/// The conditions on listed subscriptions.
package struct SubscriptionListFilter: Sendable, Hashable {
    /// Only subscriptions of this user.
    package var user: UserID?
    /// Only subscriptions for records of this type.
    package var recordType: RecordType?

    /// Creates a filter that accepts all subscriptions.
    package init() {}
}

/// The conditions on listed devices.
package struct DeviceListFilter: Sendable, Hashable {
    /// Only devices of this user.
    package var user: UserID?
    /// Only devices with this ID.
    package var device: DeviceID?

    /// Creates a filter that accepts all devices.
    package init() {}
}

/// The selection of a user's versions.
package enum NamedVersions: Sendable, Hashable {
    /// Subscriptions with this ID, in any database.
    case subscriptions(SubscriptionID)
    /// Devices with this ID, or all devices if it is `nil`.
    case devices(DeviceID?)
}

/// The IDs of versions, by serial.
package struct VersionNames: Sendable, Hashable {
    /// A subscription's ID and its owner.
    package struct Subscription: Sendable, Hashable {
        package var id: SubscriptionID
        package var owner: UserID

        package init(id: SubscriptionID, owner: UserID) {
            self.id = id
            self.owner = owner
        }
    }

    /// The subscriptions.
    package var subscriptions: [UInt64: Subscription] = [:]
    /// The devices.
    package var devices: [UInt64: DeviceID] = [:]

    /// Creates an empty set of names.
    package init() {}
}
