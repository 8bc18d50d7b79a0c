import RelayModel
import Synchronization

/// The badges of users' devices.
///
/// The fan-out in the log's turn and the ranges beside the log raise them.
///
/// A lock and not an actor, because raising a badge is short and happens within the fan-out of a
/// change.
package final class BadgeCounts: Sendable {
    private let badges = Mutex<[ContainerKey: [DeviceHolder: Int64]]>([:])

    package init() {}

    /// Sets the badge of a device.
    func set(_ badge: Int64, of device: DeviceHolder, in container: ContainerKey) {
        badges.withLock { $0[container, default: [:]][device] = badge }
    }

    /// Raises the badge of a device by one, and returns the new value.
    func raise(_ device: DeviceHolder, in container: ContainerKey) -> Int64 {
        badges.withLock { badges in
            badges[container, default: [:]][device, default: 0] += 1
            return badges[container]?[device] ?? 1
        }
    }

    /// Forgets the badge of a device.
    func forget(_ device: DeviceHolder, in container: ContainerKey) {
        badges.withLock { _ = $0[container]?.removeValue(forKey: device) }
    }
}

/// The user and the device ID that a device version belongs to.
struct DeviceHolder: Hashable {
    let owner: UserID
    let device: DeviceID
}

extension Device {
    /// The user and the device ID that this device belongs to.
    var holder: DeviceHolder { DeviceHolder(owner: owner, device: id) }
}
