import RelayModel
import Storage
import Synchronization

/// The device registrations that ended recently: signed out, taken over, or declared dead.
///
/// The follower sees an end at its place in the log, but deliveries of earlier changes may still be
/// on their way then. The sender of those must know of the end before it is acknowledged.
package final class EndedDevices: Sendable {
    private struct State {
        /// The remembered serials, each with the count of ended registrations at its end.
        var serials: [UInt64: UInt64] = [:]
        /// The number of registrations that have ended.
        var count: UInt64 = 0
        /// The serials under which the tokens of ended registrations are registered now, by their
        /// users, as far as waiting deliveries needed them.
        var heirs: [UInt64: UInt64] = [:]
        /// The serials in the order in which they ended, as a ring buffer once it is full.
        var order: [UInt64] = []
        var next = 0
    }

    /// The number of remembered serials.
    ///
    /// If more registrations end between the progress and the head, the oldest ends are noticed by
    /// retries only.
    package static let limit = 262_144

    private let limit: Int
    private let state: Mutex<State>

    /// Creates the list with `serials`, which ended in this order.
    package init(_ serials: [UInt64], limit: Int = EndedDevices.limit) {
        precondition(limit > 0)
        self.limit = limit
        var state = State()
        for serial in serials { Self.insert(serial, limit, in: &state) }
        self.state = Mutex(state)
    }

    /// Adds the ends in a commit's entries, before any caller is answered.
    package func note(_ appended: [StoredEntry]) {
        for stored in appended {
            let ended: [UInt64]
            switch stored.entry.body {
            case .deviceSaved(_, let replaced): ended = replaced
            case .devicesEnded(let serials): ended = serials
            default: continue
            }
            guard !ended.isEmpty else { continue }
            state.withLock { state in
                for serial in ended { Self.insert(serial, limit, in: &state) }
            }
        }
    }

    /// Remembers which registrations took the place of earlier ones, by the serials of those.
    ///
    /// A waiting delivery then goes by the registration that its token has now.
    func note(heirs: [UInt64: UInt64]) {
        guard !heirs.isEmpty else { return }
        state.withLock { state in
            if state.heirs.count + heirs.count > limit { state.heirs = [:] }
            // Reads run side by side, and serials only grow.
            state.heirs.merge(heirs) { max($0, $1) }
        }
    }

    /// Returns those of `serials` that are remembered as ended.
    func among(_ serials: some Sequence<UInt64>) -> Set<UInt64> {
        state.withLock { state in
            guard !state.serials.isEmpty else { return [] }
            return Set(serials.filter { state.serials[$0] != nil })
        }
    }

    /// The number of registrations that have ended.
    var count: UInt64 { state.withLock { $0.count } }

    /// Returns whether `serial`, or what took its place, has ended since the count was `count`, as
    /// far as that is remembered.
    func hasEnded(_ serial: UInt64, since count: UInt64) -> Bool {
        state.withLock { ($0.serials[$0.heirs[serial] ?? serial] ?? 0) > count }
    }

    private static func insert(_ serial: UInt64, _ limit: Int, in state: inout State) {
        guard state.serials[serial] == nil else { return }
        state.count += 1
        state.serials[serial] = state.count
        if state.order.count < limit {
            state.order.append(serial)
            return
        }
        state.serials[state.order[state.next]] = nil
        state.order[state.next] = serial
        state.next = (state.next + 1) % limit
    }
}
