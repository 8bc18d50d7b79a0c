import RelayModel
import Storage
import Synchronization

/// The registrations that ended a short while ago: signed out, taken over, declared dead.
///
/// The log tells of an end at its place, but what a change before that place owes may still be on
/// its way there. Whoever is about to send it must know from before the end is acknowledged.
package final class EndedDevices: Sendable {
    private struct State {
        /// What is remembered, with how many had ended with it.
        var serials: [UInt64: UInt64] = [:]
        /// How many have ended.
        var count: UInt64 = 0
        /// In the order in which they ended, beginning anew at its start once it is full.
        var order: [UInt64] = []
        var next = 0
    }

    /// How many are remembered: of more ends than these between the progress and the head, the
    /// oldest are known to retries only.
    package static let limit = 262_144

    private let limit: Int
    private let state: Mutex<State>

    /// Remembers `serials`, which ended in this order, and those to come.
    package init(_ serials: [UInt64], limit: Int = EndedDevices.limit) {
        precondition(limit > 0)
        self.limit = limit
        var state = State()
        for serial in serials { Self.insert(serial, limit, in: &state) }
        self.state = Mutex(state)
    }

    /// Learns what a commit appended, before anybody is answered.
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

    /// Those of `serials` that are remembered.
    func among(_ serials: some Sequence<UInt64>) -> Set<UInt64> {
        state.withLock { state in
            guard !state.serials.isEmpty else { return [] }
            return Set(serials.filter { state.serials[$0] != nil })
        }
    }

    /// How many have ended.
    var count: UInt64 { state.withLock { $0.count } }

    /// Whether `serial` has ended since `count` had, as far as it is remembered.
    func hasEnded(_ serial: UInt64, since count: UInt64) -> Bool {
        state.withLock { ($0.serials[serial] ?? 0) > count }
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
