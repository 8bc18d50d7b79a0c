import RelayModel
import Synchronization

/// The containers whose writes appended much lately.
///
/// A change of a kept record holds the whole record before and after, however little of it a
/// request writes. So only the writer learns how large a write is.
final class LargeWrites: Sendable {
    /// The number of further parts for which a container counts after a large one.
    private static let remembered = 64
    /// The maximum number of containers that are remembered.
    private static let mostContainers = 1024

    /// The number of parts for which each container still counts.
    private let left = Mutex<[ContainerKey: Int]>([:])

    /// Records a part of a container's writes.
    func note(_ container: ContainerKey, isLarge: Bool) {
        left.withLock { left in
            let parts = left[container]
            if isLarge {
                guard parts != nil || left.count < Self.mostContainers else { return }
                left[container] = Self.remembered
            } else if let parts {
                left[container] = parts > 1 ? parts - 1 : nil
            }
        }
    }

    /// Returns whether a container's writes appended much lately.
    func contains(_ container: ContainerKey) -> Bool {
        left.withLock { $0[container] != nil }
    }
}
