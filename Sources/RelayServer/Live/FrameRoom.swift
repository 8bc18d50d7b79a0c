import RelayModel
import Synchronization

/// Bounds what all sockets hold of frames that have come, in part or waiting to be worked.
///
/// One may hold some megabytes, for as long as its client likes, and thousands may be there. It is
/// as for bodies: one container gets the half, and the last of it is for what is short. All of whom
/// it is not known who they are get the half too, or whoever likes could have it all.
///
/// Concurrency: a lock around numbers; nobody is called while it is held.
final class FrameRoom: Sendable {
    /// What each socket holds without being counted.
    static let free = 4096

    /// What one socket has taken.
    struct Part {
        var bytes = 0
        var container: ContainerKey?
    }

    private struct Budget {
        var all: BodyBudget
        /// Of strangers, besides.
        var strangers: BodyBudget

        mutating func take(_ bytes: Int, for container: ContainerKey?) -> Bool {
            let isShort = bytes <= BodyBudget.portion
            let isStrange = container == nil
            if isStrange, !strangers.take(bytes, for: nil, isBeginning: isShort) { return false }
            if all.take(bytes, for: container, isBeginning: isShort) { return true }
            if isStrange { strangers.give(bytes, of: nil) }
            return false
        }

        mutating func give(_ bytes: Int, of container: ContainerKey?) {
            all.give(bytes, of: container)
            if container == nil { strangers.give(bytes, of: nil) }
        }
    }

    private let budget: Mutex<Budget>

    init(megabytes: Int = 256) {
        let room = megabytes * 1024 * 1024
        budget = Mutex(
            Budget(all: BodyBudget(room: room), strangers: BodyBudget(room: room / 2)))
    }

    /// Notes what a socket holds now, of which container, where that is known.
    ///
    /// - Returns: whether there is room for it; if not, nothing is taken any more.
    func set(_ part: inout Part, to held: Int, of container: ContainerKey?) -> Bool {
        let bytes = max(0, held - Self.free)
        guard bytes != part.bytes || bytes > 0 && container != part.container else { return true }
        return budget.withLock { budget in
            if bytes < part.bytes, container == part.container {
                budget.give(part.bytes - bytes, of: container)
                part.bytes = bytes
                return true
            }
            budget.give(part.bytes, of: part.container)
            part = Part()
            guard bytes == 0 || budget.take(bytes, for: container) else { return false }
            part = Part(bytes: bytes, container: container)
            return true
        }
    }

    /// The bytes that are held, without what is not counted.
    var bytes: Int { budget.withLock { $0.all.used } }
}
