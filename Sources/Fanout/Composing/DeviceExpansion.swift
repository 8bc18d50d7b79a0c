package import RelayModel
package import Storage

/// From the subscriptions that a change fires to the devices that it notifies.
///
/// Pure.
package enum DeviceExpansion {
    /// The devices of a subscription's owner that `change` notifies, in the order given.
    ///
    /// The device that made the change is left out, deletions included, with whatever else its
    /// client registered; with an unknown origin nobody is.
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

    /// The device of `user` on which a change was made, if it was made on one.
    ///
    /// A device's ID belongs to the user who has it, so that nobody can keep a change from another
    /// user's device. Where the source says no user, it vouches for the device, and the device of
    /// that name is meant whoever has it.
    static func origin(of change: RecordChange, for user: UserID) -> DeviceID? {
        guard change.origin.userID == nil || change.origin.userID == user else { return nil }
        return change.origin.deviceID
    }
}
