import RelayModel
import Synchronization

/// The badges on the icons of users' devices, which the log and the ranges beside it raise.
///
/// A lock, not an actor: raising is short and happens within a change's fan-out.
package final class BadgeCounts: Sendable {
    private let badges = Mutex<[ContainerKey: [DeviceHolder: Int64]]>([:])

    package init() {}

    /// Sets a device's badge.
    func set(_ badge: Int64, of device: DeviceHolder, in container: ContainerKey) {
        badges.withLock { $0[container, default: [:]][device] = badge }
    }

    /// Raises a device's badge by one, and returns it.
    func raise(_ device: DeviceHolder, in container: ContainerKey) -> Int64 {
        badges.withLock { badges in
            badges[container, default: [:]][device, default: 0] += 1
            return badges[container]?[device] ?? 1
        }
    }

    /// Forgets a device's badge.
    func forget(_ device: DeviceHolder, in container: ContainerKey) {
        badges.withLock { _ = $0[container]?.removeValue(forKey: device) }
    }
}

/// Whose a version of a device is.
struct DeviceHolder: Hashable {
    let owner: UserID
    let device: DeviceID
}

extension Device {
    /// Whose it is.
    var holder: DeviceHolder { DeviceHolder(owner: owner, device: id) }
}
