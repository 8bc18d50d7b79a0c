import NIOCore
import RelayModel
import Synchronization

/// Bounds how many of those who say `hello` over sockets are judged at a time; the others wait, in
/// the order in which they came.
///
/// Each keeps some ten kilobytes while it is judged, and little while it waits: where ten thousand
/// come back at once, to judge them all together would take no less time.
///
/// Concurrency: a lock around the line; nobody is resumed while it is held.
final class HelloTurns: Sendable {
    private struct State {
        var free: Int
        var line = CircularBuffer<CheckedContinuation<Void, Never>>(initialCapacity: 1)
    }

    private let state: Mutex<State>

    init(_ count: Int = 256) {
        state = Mutex(State(free: count))
    }

    /// Returns once it is one's turn, which is to be given back.
    func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state -> Bool in
                guard state.free > 0 else {
                    state.line.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    /// The same, unless `isGone` says by then that nobody waits for it any more: where thousands
    /// come back at once many do so anew before they have been judged.
    ///
    /// - Throws: ``LiveEnd`` in that case, which nobody hears; there is no turn to give back then.
    func take(unless isGone: () -> Bool) async throws(LiveEnd) {
        await take()
        guard isGone() else { return }
        give()
        throw LiveEnd(.goingAway, APIError(.badRequest, "the client has gone"))
    }

    /// Gives a turn back, to the next who waits.
    func give() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            let next = state.line.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }

    /// How many wait.
    var waiting: Int { state.withLock { $0.line.count } }
}
