import RelayModel
import Synchronization

/// Bounds the frames that all sockets hold: partly received ones, and those that wait to be worked.
///
/// A socket may hold some megabytes for as long as its client likes, and there may be thousands of
/// sockets. The rules are those for bodies: one container gets at most half of the room, and the
/// last eighth is for short frames. All clients that are not identified yet get half together;
/// otherwise they could take it all.
///
/// Concurrency: a lock around numbers; no other code is called while it is held.
final class FrameRoom: Sendable {
    /// The bytes that each socket may hold without being counted.
    static let free = 4096

    /// What one socket has taken.
    struct Part {
        var bytes = 0
        var container: ContainerKey?
    }

    private struct Budget {
        var all: BodyBudget
        /// The budget of unidentified clients, which `all` counts too.
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

    /// Notes how much a socket holds now, and for which container, if that is known.
    ///
    /// - Returns: Whether there is room for it; if not, the socket's room is given back.
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

    /// The bytes that are held, without the uncounted bytes of each socket.
    var bytes: Int { budget.withLock { $0.all.used } }
}
