package import RelayModel
package import Storage

/// What the walk needs of a store, in one value.
package typealias ConformingStore = Registry & IntakeLog & Shadow & ShardHandle & StoreUpkeep

/// Makes stores of one engine for the conformance suite.
package protocol StoreFactory: Sendable {
    /// A new, empty store.
    func makeStore() async throws -> any ConformingStore
    /// The same store after its process ended and began anew.
    func reopen(_ store: any ConformingStore) async throws -> any ConformingStore
}

/// One statement of the contract that every engine honours, with the check that shows it.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    /// The statement.
    package let description: String
    /// Shows that it holds, with expectations of the Testing library.
    package let check: @Sendable (any StoreFactory) async throws -> Void

    init(
        _ description: String, check: @escaping @Sendable (any StoreFactory) async throws -> Void
    ) {
        self.description = description
        self.check = check
    }
}

/// The whole contract.
package enum StoreConformance {
    /// Every statement; an engine's suite runs each as a test of its own.
    package static let cases =
        ShardLogConformance.cases + SubscriptionConformance.cases + DeviceConformance.cases
        + ProgressConformance.cases + RegistryConformance.cases + CourierConformance.cases
        + InboxConformance.cases + ShadowConformance.cases + ShadowConformance.cascades
        + RangeConformance.cases + SnapshotConformance.cases + UpkeepConformance.cases
        + PastConformance.cases
        + ListConformance.cases + HealthConformance.cases + ClientReceiptConformance.cases
        + HeldConformance.cases
}

/// Values from which the suite builds its cases.
package enum Sample {
    /// A container that every case saves first.
    package static let container = key("iCloud.com.example.Art")
    /// Another one.
    package static let otherContainer = key("iCloud.com.example.Music")
    /// A change source.
    package static let source = identifier("postgres", as: SourceName.self)

    /// A moment so many seconds after the beginning of the suite's time.
    package static func moment(_ seconds: Int64) -> Timestamp {
        Timestamp(seconds: 1_800_000_000 + seconds)
    }

    /// A container key of the production environment.
    package static func key(_ name: String) -> ContainerKey {
        ContainerKey(container: identifier(name), environment: .production)
    }

    /// An identifier that must be valid.
    package static func identifier<Identifier: ValidatedIdentifier>(
        _ text: String, as type: Identifier.Type = Identifier.self
    ) -> Identifier {
        guard let identifier = Identifier(rawValue: text) else {
            preconditionFailure("not \(Identifier.rule)")
        }
        return identifier
    }

    /// A change of one artwork.
    package static func change(
        _ name: String, _ operation: ChangeOperation = .update, version: Int64? = nil
    ) -> RecordChange {
        var change = RecordChange(
            operation, of: identifier("Artwork"), RecordID(recordName: identifier(name)))
        change.after = RecordImage(["artist": .string("artist-1"), "year": .integer(1907)])
        change.version = version
        return change
    }

    /// A change with a dedupe key.
    package static func keyed(
        _ name: String, _ kind: DedupeKey.Kind = .position, _ text: String, digest: UInt8 = 1
    ) -> ChangeToAppend {
        ChangeToAppend(
            change(name),
            key: DedupeKey(kind: kind, text: text, digest: Array(repeating: digest, count: 32)))
    }

    /// A change without a dedupe key.
    package static func unkeyed(_ name: String, version: Int64? = nil) -> ChangeToAppend {
        ChangeToAppend(change(name, version: version), key: nil)
    }

    /// A user's public database.
    package static func owner(
        _ user: String, _ container: ContainerKey = Sample.container
    ) -> SubscriptionOwner {
        SubscriptionOwner(container: container, database: .public, user: identifier(user))
    }

    /// A query subscription of `owner` on the artworks of one artist.
    package static func subscription(
        _ id: String, artist: String, of owner: SubscriptionOwner, once: Bool = false
    ) -> Subscription {
        let canonical = "artist == \"\(artist)\""
        let query = SubscriptionQuery(
            recordType: identifier("Artwork"), form: .predicate, source: "artist == %@",
            arguments: [.string(artist)], canonical: canonical)
        var info = NotificationInfo()
        info.alertBody = "New work"
        return Subscription(
            id: identifier(id), container: owner.container, database: owner.database,
            owner: owner.user, scope: .query(query, zoneID: nil), firesOn: [.create, .update],
            firesOnce: once, notificationInfo: info)
    }

    /// A device token whose digits repeat one byte.
    package static func token(_ byte: UInt8) -> DeviceToken {
        identifier(String(repeating: Hexadecimal.encode([byte]), count: 32))
    }

    /// A device of a user.
    package static func device(
        _ id: String, of user: String, token byte: UInt8,
        in container: ContainerKey = Sample.container
    ) -> Device {
        Device(
            id: identifier(id), container: container, owner: identifier(user),
            gatewayEnvironment: .production, token: token(byte))
    }

    /// A delivery's identity that differs for each number.
    package static func deliveryID(_ number: UInt64) -> DeliveryID {
        DeliveryID(UUIDBytes(high: 0x1234_5678_9ABC_DEF0, low: number))
    }

    /// A delivery that the change at `position` owes.
    package static func owed(
        _ number: UInt64, at position: UInt64 = 1, in container: ContainerKey = Sample.container
    ) -> OwedDelivery {
        let device = device("device-\(number)", of: "user-1", token: 7, in: container)
        let notification = PushNotification(
            pushType: .alert, priority: 10, topic: "com.example.Art", collapseID: "c",
            expiration: moment(3600), payload: Array(#"{"aps":{"alert":"Grüße"}}"#.utf8))
        let delivery = Delivery(
            id: deliveryID(number),
            ordinal: DeliveryOrdinal(position: LogPosition(position), offset: UInt32(number)),
            container: container, subscriptionID: identifier("artworks"),
            owner: identifier("user-1"), device: device, registeredAt: moment(1),
            appendedAt: moment(2), notification: notification, badge: 3)
        return OwedDelivery(delivery, subscriptionSerial: 4, deviceSerial: 5)
    }

    /// A receipt of the delivery with this number.
    package static func receipt(
        _ number: UInt64, _ outcome: DeliveryReceipt.Outcome, at position: UInt64 = 1,
        reason: String = ""
    ) -> DeliveryReceipt {
        DeliveryReceipt(
            deliveryID: deliveryID(number),
            ordinal: DeliveryOrdinal(position: LogPosition(position), offset: UInt32(number)),
            subscriptionSerial: number % 3, deviceSerial: number % 5, outcome: outcome,
            status: outcome == .accepted ? 200 : 503, reason: reason, attempt: 1,
            at: moment(Int64(number)))
    }
}

extension StoreFactory {
    /// A new store that knows the two sample containers.
    func makeReadyStore() async throws -> any ConformingStore {
        let store = try await makeStore()
        for key in [Sample.container, Sample.otherContainer] {
            try await store.save(
                ContainerSettings(key: key, topics: ["com.example.Art"]), at: Sample.moment(0))
        }
        return store
    }
}
