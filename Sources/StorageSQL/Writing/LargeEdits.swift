import RelayModel
import Synchronization

/// The containers whose edits appended much lately.
///
/// A change of a record holds the whole record before and after, however little of it an edit
/// writes. So only the writer learns how large an edit is.
final class LargeEdits: Sendable {
    /// The number of further parts for which a container counts after a part with large edits.
    private static let remembered = 64
    /// The maximum number of containers that are remembered.
    private static let mostContainers = 1024

    /// The number of parts for which each container still counts.
    private let left = Mutex<[ContainerKey: Int]>([:])

    /// Records a part of a container's edits.
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

    /// Returns whether a container's edits appended much lately.
    func contains(_ container: ContainerKey) -> Bool {
        left.withLock { $0[container] != nil }
    }
}
