import NIOCore
import RelayModel
import Synchronization

/// Bounds how many `hello` frames of sockets are judged at a time; the others wait in order.
///
/// A client takes some ten kilobytes while it is judged, and little while it waits. If ten thousand
/// clients come back at once, judging them all together would take just as long.
///
/// Concurrency: a lock around the line; no continuation is resumed while it is held.
final class HelloTurns: Sendable {
    private struct State {
        var free: Int
        var line = CircularBuffer<CheckedContinuation<Void, Never>>(initialCapacity: 1)
    }

    private let state: Mutex<State>

    init(_ count: Int = 256) {
        state = Mutex(State(free: count))
    }

    /// Waits for a turn, which the caller has to give back.
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

    /// Waits for a turn, unless `isGone` returns true by then.
    ///
    /// If thousands of clients come back at once, many of them connect again before they have been
    /// judged.
    ///
    /// - Throws: ``LiveEnd`` if the client has gone; then it is not sent, and there is no turn to
    ///   give back.
    func take(unless isGone: () -> Bool) async throws(LiveEnd) {
        await take()
        guard isGone() else { return }
        give()
        throw LiveEnd(.goingAway, APIError(.badRequest, "the client has gone"))
    }

    /// Gives a turn back, to the next waiter.
    func give() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            let next = state.line.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }

    /// The number of waiters.
    var waiting: Int { state.withLock { $0.line.count } }
}
