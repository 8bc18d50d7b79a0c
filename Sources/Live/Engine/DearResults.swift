import Synchronization

/// Results whose conditions took too many steps for a record.
///
/// They are no longer matched, and have to end. That also holds if the other findings are lost
/// because the store begins the reading anew or cannot read.
final class DearResults: Sendable {
    private struct State {
        var new: [UInt64] = []
        var all: Set<UInt64> = []
    }

    private let state = Mutex(State())

    /// All results noted so far.
    var all: Set<UInt64> { state.withLock { $0.all } }

    func note(_ serials: [UInt64]) {
        state.withLock { state in
            state.new += serials
            state.all.formUnion(serials)
        }
    }

    /// Returns the results that were noted since the last call.
    func take() -> [UInt64] {
        state.withLock { state in
            defer { state.new = [] }
            return state.new
        }
    }
}
