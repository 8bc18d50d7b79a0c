package import RelayModel

/// Default values for tests that do not depend on what they are.
package enum Fixtures {
    /// A container in development.
    package static let container = ContainerKey(
        container: identifier("iCloud.com.example.Art"), environment: .development)

    /// A fixed moment.
    package static let moment = Timestamp(seconds: 1_700_000_000)

    /// Returns a validated identifier; `text` must be valid.
    package static func identifier<Identifier: ValidatedIdentifier>(
        _ text: String
    ) -> Identifier {
        guard let identifier = Identifier(rawValue: text) else {
            preconditionFailure("\(text) is not \(Identifier.rule)")
        }
        return identifier
    }

    /// Returns a device token with the hexadecimal digits of a number.
    package static func token(_ number: Int) -> DeviceToken {
        let digits = String(number, radix: 16)
        return identifier(String(repeating: "0", count: 64 - digits.count) + digits)
    }

    /// Returns a device of `owner`.
    package static func device(
        _ name: String, of owner: String = "alice", token number: Int = 1,
        in container: ContainerKey = container
    ) -> Device {
        Device(
            id: identifier(name), container: container, owner: identifier(owner),
            gatewayEnvironment: .development, token: token(number))
    }

    /// Returns a query subscription of `owner` on `recordType`.
    package static func subscription(
        _ id: String, of owner: String = "alice", on recordType: String = "Artwork",
        where canonical: String = "TRUEPREDICATE", firesOn: FiresOn = .all,
        in container: ContainerKey = container
    ) -> Subscription {
        Subscription(
            id: identifier(id), container: container, database: .public, owner: identifier(owner),
            scope: .query(
                SubscriptionQuery(
                    recordType: identifier(recordType), form: .predicate,
                    source: .string(canonical), canonical: canonical), zoneID: nil),
            firesOn: firesOn)
    }

    /// Returns a change of a record in the public database.
    package static func change(
        _ operation: ChangeOperation = .create, of recordType: String = "Artwork",
        _ name: String = "a1", fields: RecordFields = [:]
    ) -> RecordChange {
        var change = RecordChange(
            operation, of: identifier(recordType), RecordID(recordName: identifier(name)))
        if operation == .delete {
            change.before = RecordImage(fields)
        } else {
            change.after = RecordImage(fields)
        }
        return change
    }

    /// Returns a delivery that the change at `position` owes, with `offset` in its fan-out.
    package static func delivery(
        at position: UInt64, _ offset: UInt32 = 0, device name: String = "phone",
        expiration: Timestamp? = nil, badge: Int64? = nil
    ) -> OwedDelivery {
        let ordinal = DeliveryOrdinal(position: LogPosition(position), offset: offset)
        let delivery = Delivery(
            id: DeliveryID(UUIDBytes(high: position, low: UInt64(offset))), ordinal: ordinal,
            container: container, subscriptionID: identifier("s1"), owner: identifier("alice"),
            device: device(name), registeredAt: moment, appendedAt: moment,
            notification: PushNotification(
                pushType: .alert, priority: 10, topic: "com.example.art", expiration: expiration,
                payload: Array("{}".utf8)),
            badge: badge)
        return OwedDelivery(delivery, subscriptionSerial: 1, deviceSerial: 1)
    }
}
