package import RelayModel
package import Storage

/// The step from the subscriptions that a change fires to the devices that it notifies.
///
/// Pure.
package enum DeviceExpansion {
    /// Returns the devices of a subscription's owner that `change` notifies, in the order given.
    ///
    /// The device that made the change is left out, also for deletions. So are the other devices
    /// that the same client registered. If the origin is unknown, no device is left out.
    package static func devices(
        among devices: [DeviceVersion], for subscription: Subscription, of change: RecordChange
    ) -> [DeviceVersion] {
        switch subscription.suppress {
        case .none:
            return devices
        case .user:
            return subscription.owner == change.origin.userID ? [] : devices
        case .device:
            guard let origin = origin(of: change, for: subscription.owner) else { return devices }
            return devices.filter { !$0.device.id.isOfSameClient(as: origin) }
        }
    }

    /// Returns the device of `user` that made a change, or `nil` if none did.
    ///
    /// A device ID is meant only for the user who is named with it. So a user cannot suppress the
    /// pushes to another user's device by naming its ID. If the source names no user, the relay
    /// trusts the source, and the device ID counts for every user.
    static func origin(of change: RecordChange, for user: UserID) -> DeviceID? {
        guard change.origin.userID == nil || change.origin.userID == user else { return nil }
        return change.origin.deviceID
    }
}
