package import RelayModel
package import Storage

/// Everything that the walk needs of a store.
package typealias ConformingStore = Registry & IntakeLog & Shadow & ShardHandle & StoreUpkeep

/// Makes stores of one engine for the conformance suite.
package protocol StoreFactory: Sendable {
    /// Makes a new, empty store.
    func makeStore() async throws -> any ConformingStore
    /// Opens the store again, as a new process does after the old one has ended.
    func reopen(_ store: any ConformingStore) async throws -> any ConformingStore
}

/// One statement of the contract that every engine honours, with the check that shows it.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    /// The statement.
    package let description: String
    /// Shows that the statement holds, with expectations of the Testing library.
    package let check: @Sendable (any StoreFactory) async throws -> Void

    init(
        _ description: String, check: @escaping @Sendable (any StoreFactory) async throws -> Void
    ) {
        self.description = description
        self.check = check
    }
}

/// The whole contract of a store.
package enum StoreConformance {
    /// All cases; an engine's suite runs each as a test of its own.
    package static let cases =
        ShardLogConformance.cases + SubscriptionConformance.cases + DeviceConformance.cases
        + ProgressConformance.cases + RegistryConformance.cases + CourierConformance.cases
        + InboxConformance.cases + ShadowConformance.cases + ShadowConformance.cascades
        + RangeConformance.cases + SnapshotConformance.cases + UpkeepConformance.cases
        + PastConformance.cases
        + ListConformance.cases + HealthConformance.cases + ClientReceiptConformance.cases
        + HeldConformance.cases
}

/// Sample values from which the suite builds its cases.
package enum Sample {
    /// The container that every case saves first.
    package static let container = key("iCloud.com.example.Art")
    /// The second container that every case saves.
    package static let otherContainer = key("iCloud.com.example.Music")
    /// The name of a change source.
    package static let source = identifier("postgres", as: SourceName.self)

    /// Returns the moment `second` seconds after the start of the suite's time.
    package static func moment(_ seconds: Int64) -> Timestamp {
        Timestamp(seconds: 1_800_000_000 + seconds)
    }

    /// Returns a container key of the production environment.
    package static func key(_ name: String) -> ContainerKey {
        ContainerKey(container: identifier(name), environment: .production)
    }

    /// Returns a validated identifier; `text` must be valid.
    package static func identifier<Identifier: ValidatedIdentifier>(
        _ text: String, as type: Identifier.Type = Identifier.self
    ) -> Identifier {
        guard let identifier = Identifier(rawValue: text) else {
            preconditionFailure("not \(Identifier.rule)")
        }
        return identifier
    }

    /// Returns a change of one artwork.
    package static func change(
        _ name: String, _ operation: ChangeOperation = .update, version: Int64? = nil
    ) -> RecordChange {
        var change = RecordChange(
            operation, of: identifier("Artwork"), RecordID(recordName: identifier(name)))
        change.after = RecordImage(["artist": .string("artist-1"), "year": .integer(1907)])
        change.version = version
        return change
    }

    /// Returns a change with a dedupe key.
    package static func keyed(
        _ name: String, _ kind: DedupeKey.Kind = .position, _ text: String, digest: UInt8 = 1
    ) -> ChangeToAppend {
        ChangeToAppend(
            change(name),
            key: DedupeKey(kind: kind, text: text, digest: Array(repeating: digest, count: 32)))
    }

    /// Returns a change without a dedupe key.
    package static func unkeyed(_ name: String, version: Int64? = nil) -> ChangeToAppend {
        ChangeToAppend(change(name, version: version), key: nil)
    }

    /// Returns the owner for a user's public database.
    package static func owner(
        _ user: String, _ container: ContainerKey = Sample.container
    ) -> SubscriptionOwner {
        SubscriptionOwner(container: container, database: .public, user: identifier(user))
    }

    /// Returns a query subscription of `owner` on the artworks of one artist.
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

    /// Returns a device token of 32 equal bytes.
    package static func token(_ byte: UInt8) -> DeviceToken {
        identifier(String(repeating: Hexadecimal.encode([byte]), count: 32))
    }

    /// Returns a device of a user.
    package static func device(
        _ id: String, of user: String, token byte: UInt8,
        in container: ContainerKey = Sample.container
    ) -> Device {
        Device(
            id: identifier(id), container: container, owner: identifier(user),
            gatewayEnvironment: .production, token: token(byte))
    }

    /// Returns a delivery ID that differs for each number.
    package static func deliveryID(_ number: UInt64) -> DeliveryID {
        DeliveryID(UUIDBytes(high: 0x1234_5678_9ABC_DEF0, low: number))
    }

    /// Returns a delivery that the change at `position` owes.
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

    /// Returns a receipt of the delivery with this number.
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
    /// Makes a new store in which the two sample containers are saved.
    func makeReadyStore() async throws -> any ConformingStore {
        let store = try await makeStore()
        for key in [Sample.container, Sample.otherContainer] {
            try await store.save(
                ContainerSettings(key: key, topics: ["com.example.Art"]), at: Sample.moment(0))
        }
        return store
    }
}
