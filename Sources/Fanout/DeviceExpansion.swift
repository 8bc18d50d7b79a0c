package import RelayModel
package import Storage

/// From the subscriptions that a change fires to the devices that it notifies.
///
/// Pure.
package enum DeviceExpansion {
    /// The devices of a subscription's owner that `change` notifies, in the order given.
    ///
    /// The device that made the change is left out, deletions included; with an unknown origin
    /// nobody is (design §4.5). A user who may not read the record gets nothing (design §4.7).
    package static func devices(
        among devices: [DeviceVersion], for subscription: Subscription, of change: RecordChange
    ) -> [DeviceVersion] {
        guard mayRead(subscription.owner, change) else { return [] }
        switch subscription.suppress {
        case .none:
            return devices
        case .user:
            return subscription.owner == change.origin.userID ? [] : devices
        case .device:
            guard let origin = change.origin.deviceID else { return devices }
            return devices.filter { $0.device.id != origin }
        }
    }

    /// Whether the change's read rule lets `user` know of it.
    ///
    /// Without a rule everybody may read the public database, and the owner a private one,
    /// which the index has seen to.
    private static func mayRead(_ user: UserID, _ change: RecordChange) -> Bool {
        guard let readers = change.readers else { return true }
        return readers.contains { $0 == "world" || $0 == user.rawValue }
    }
}
