package import RelayModel

/// What users' clients report about notifications: that one arrived, or that it was opened.
///
/// This completes the trace of a delivery, which for the relay ends when the gateway accepts it.
package protocol ClientReceiptRegistry: Sendable {
    /// Records what a user's clients report; durable when it returns.
    ///
    /// The first report of a fact stays.
    ///
    /// A user's newest receipts are kept, up to ``RelayModel/Limits/maximumClientReceiptsPerUser``.
    ///
    /// - Returns: The result for each mark, in order.
    func note(
        _ marks: [ClientMark], of user: InboxOwner, at now: Timestamp
    ) async throws -> [NotedMark]
    /// Returns what a user's clients reported about notifications of these changes.
    func clientReceipts(
        of user: InboxOwner, at positions: Set<LogPosition>
    ) async throws -> [ClientReceipt]
    /// Returns the changes of those notifications that the user's inbox contains.
    func positions(
        ofNotifications ids: [UUIDBytes], of user: InboxOwner
    ) async throws -> [UUIDBytes: LogPosition]
    /// Returns those receipts that `isWanted` accepts among the newest `bound` receipts, or among
    /// those of the change at `position` if it is given.
    func receipts(
        amongNewest bound: Int, at position: LogPosition?,
        where isWanted: @escaping @Sendable (DeliveryReceipt) -> Bool
    ) async throws -> [DeliveryReceipt]
    /// Returns the owners and device IDs of the device versions with these serials, ended ones
    /// included.
    func holders(ofDevices serials: Set<UInt64>) async throws -> [UInt64: DeviceName]
}

/// A device ID with the user that it belongs to.
package struct DeviceName: Sendable, Hashable {
    /// The device's user.
    package var owner: InboxOwner
    /// The installation.
    package var device: DeviceID

    package init(owner: InboxOwner, device: DeviceID) {
        self.owner = owner
        self.device = device
    }
}

/// One report of a client about a notification.
package struct ClientMark: Sendable, Hashable {
    /// The reported fact.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The notification arrived at the device.
        case delivered
        /// The user opened the notification, which implies that it arrived.
        case opened
    }

    /// The change that the notification is about.
    package var position: LogPosition
    /// The device that reports, if it names itself.
    package var device: DeviceID?
    /// The serial of the subscription's version, if the report names one push; `nil` if it names
    /// the notification, which all pushes of a change to one user share.
    package var subscriptionSerial: UInt64?
    /// The reported fact.
    package var kind: Kind
    /// The moment of the fact.
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

/// The result of recording a mark.
package struct NotedMark: Sendable, Hashable {
    /// Everything reported so far.
    package var receipt: ClientReceipt
    /// Whether this is the first report of the arrival.
    package var isNewDelivery: Bool
    /// Whether this mark is the first report of the opening.
    package var isNewOpening: Bool

    package init(receipt: ClientReceipt, isNewDelivery: Bool, isNewOpening: Bool) {
        self.receipt = receipt
        self.isNewDelivery = isNewDelivery
        self.isNewOpening = isNewOpening
    }
}

/// What a client reported about a notification.
package struct ClientReceipt: Sendable, Hashable {
    /// The change that the notification is about.
    package var position: LogPosition
    /// The device that reported, if it named itself.
    package var device: DeviceID?
    /// The serial of the subscription's version, if the report named one push.
    package var subscriptionSerial: UInt64?
    /// When the notification arrived.
    package var deliveredAt: Timestamp
    /// When the notification was opened, if it was.
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

    /// Returns whether the receipt can belong to the push of the change at `position` to `device`
    /// by the subscription version.
    package func mayBe(
        of position: LogPosition, _ subscriptionSerial: UInt64, to device: DeviceID
    ) -> Bool {
        self.position == position
            && self.subscriptionSerial.map { $0 == subscriptionSerial } ?? true
            && self.device.map { $0.isOfSameClient(as: device) } ?? true
    }
}

/// What the reports of the user's clients say about one push.
package struct PushReceipt: Sendable, Hashable {
    /// When the push arrived.
    package var deliveredAt: Timestamp
    /// Whether the device itself reported the arrival, and not an unnamed client of the user.
    package var isDeliveredThere: Bool
    /// When the push was opened, if it was.
    package var openedAt: Timestamp?
    /// Whether the device itself reported the opening.
    package var isOpenedThere: Bool
}

extension [ClientReceipt] {
    /// Returns what is known of one push, or `nil` if nothing was reported.
    ///
    /// The earliest report of the device itself counts. If it reported nothing, the earliest report
    /// of an unnamed client of the user counts.
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
