import Synchronization

/// Results that a reading notes on its way, by number.
///
/// They are kept outside of what is read, so that they count if the other findings are lost because
/// the store begins the reading anew or cannot read.
final class NotedResults: Sendable {
    private struct State {
        var new: [UInt64] = []
        var all: Set<UInt64> = []
    }

    private let state = Mutex(State())

    /// All results noted so far.
    var all: Set<UInt64> { state.withLock { $0.all } }

    func note(_ serials: [UInt64]) {
        guard !serials.isEmpty else { return }
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

/// Results that an index did not ask about one record, because nobody to whom they are shown may
/// read it.
///
/// The index notes them while it holds one of its readers, so this takes no lock.
final class UnheardResults {
    private(set) var serials: Set<UInt64> = []

    func note(_ serial: UInt64) { serials.insert(serial) }
}
