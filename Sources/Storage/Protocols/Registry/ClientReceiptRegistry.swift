package import RelayModel

/// What users' clients say of notifications: that one came, that it was opened.
///
/// It ends the trace of a delivery, which for the relay is over when the gateway has accepted it.
package protocol ClientReceiptRegistry: Sendable {
    /// Notes what a user's client says, durably when it returns; what was said first stays.
    ///
    /// Of a user's receipts the newest are kept, up to
    /// ``RelayModel/Limits/maximumClientReceiptsPerUser``.
    ///
    /// - Returns: What came of each, in order.
    func note(
        _ marks: [ClientMark], of user: InboxOwner, at now: Timestamp
    ) async throws -> [NotedMark]
    /// What a user's clients said of notifications of these changes.
    func clientReceipts(
        of user: InboxOwner, at positions: Set<LogPosition>
    ) async throws -> [ClientReceipt]
    /// The changes of those of these notifications that a user's inbox has.
    func positions(
        ofNotifications ids: [UUIDBytes], of user: InboxOwner
    ) async throws -> [UUIDBytes: LogPosition]
    /// Those of the newest receipts that somebody wants, of at most `bound` that are looked at; of
    /// one change if it is said which.
    func receipts(
        amongNewest bound: Int, at position: LogPosition?,
        where isWanted: @escaping @Sendable (DeliveryReceipt) -> Bool
    ) async throws -> [DeliveryReceipt]
    /// Whose the versions of devices with these serials are, or were.
    func holders(ofDevices serials: Set<UInt64>) async throws -> [UInt64: DeviceName]
}

/// A device by name, and whose it is.
package struct DeviceName: Sendable, Hashable {
    /// Whose.
    package var owner: InboxOwner
    /// The installation.
    package var device: DeviceID

    package init(owner: InboxOwner, device: DeviceID) {
        self.owner = owner
        self.device = device
    }
}

/// That a client says something of a notification.
package struct ClientMark: Sendable, Hashable {
    /// What.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// It came to the device.
        case delivered
        /// The user opened it, and so it came.
        case opened
    }

    /// The change of which it tells.
    package var position: LogPosition
    /// The device that says it, if it says which it is.
    package var device: DeviceID?
    /// The subscription's version, where one push is named; `nil` where it is the notification,
    /// which all pushes of a change to one user share.
    package var subscriptionSerial: UInt64?
    /// What.
    package var kind: Kind
    /// When.
    package var at: Timestamp

    package init(
        position: LogPosition, device: DeviceID?, subscriptionSerial: UInt64?, kind: Kind,
        at: Timestamp
    ) {
        self.position = position
        self.device = device
        self.subscriptionSerial = subscriptionSerial
        self.kind = kind
        self.at = at
    }
}

/// What came of a mark.
package struct NotedMark: Sendable, Hashable {
    /// All that was said so far.
    package var receipt: ClientReceipt
    /// Whether nobody had said before that it came.
    package var isNewDelivery: Bool
    /// Whether nobody had said before that it was opened, and this mark says it.
    package var isNewOpening: Bool

    package init(receipt: ClientReceipt, isNewDelivery: Bool, isNewOpening: Bool) {
        self.receipt = receipt
        self.isNewDelivery = isNewDelivery
        self.isNewOpening = isNewOpening
    }
}

/// What a client said of a notification.
package struct ClientReceipt: Sendable, Hashable {
    /// The change of which it tells.
    package var position: LogPosition
    /// The device that said it, if it said which it is.
    package var device: DeviceID?
    /// The subscription's version, where one push was named.
    package var subscriptionSerial: UInt64?
    /// When it came.
    package var deliveredAt: Timestamp
    /// When it was opened, if it was.
    package var openedAt: Timestamp?

    package init(
        position: LogPosition, device: DeviceID?, subscriptionSerial: UInt64?,
        deliveredAt: Timestamp, openedAt: Timestamp? = nil
    ) {
        self.position = position
        self.device = device
        self.subscriptionSerial = subscriptionSerial
        self.deliveredAt = deliveredAt
        self.openedAt = openedAt
    }

    /// Whether it may be of the push of a change to a device by a subscription.
    package func mayBe(
        of position: LogPosition, _ subscriptionSerial: UInt64, to device: DeviceID
    ) -> Bool {
        self.position == position
            && self.subscriptionSerial.map { $0 == subscriptionSerial } ?? true
            && self.device.map { $0.isOfSameClient(as: device) } ?? true
    }
}

/// What is known of one push from what the user's clients said.
package struct PushReceipt: Sendable, Hashable {
    /// When it came.
    package var deliveredAt: Timestamp
    /// Whether the device itself said that, and not one of the user's that is not named.
    package var isDeliveredThere: Bool
    /// When it was opened, if it was.
    package var openedAt: Timestamp?
    /// Whether the device itself said that.
    package var isOpenedThere: Bool
}

extension [ClientReceipt] {
    /// What is known of one push: the first that was said of it by the device itself, and where
    /// that said nothing, by some device of the user.
    package func merged(
        of position: LogPosition, _ subscriptionSerial: UInt64, to device: DeviceID
    ) -> PushReceipt? {
        let all = filter { $0.mayBe(of: position, subscriptionSerial, to: device) }
        let own = all.filter { $0.device != nil }
        let told = own.isEmpty ? all : own
        guard let deliveredAt = told.map(\.deliveredAt).min() else { return nil }
        let opened = own.compactMap(\.openedAt).min()
        return PushReceipt(
            deliveredAt: deliveredAt, isDeliveredThere: !own.isEmpty,
            openedAt: opened ?? all.compactMap(\.openedAt).min(), isOpenedThere: opened != nil)
    }
}
