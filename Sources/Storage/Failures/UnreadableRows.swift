package import RelayModel
import Synchronization

/// A row that is there and does not hold what Belfry writes.
///
/// It is set aside alone: whoever reads many rows goes on with the others.
package struct UnreadableRow: Sendable, Hashable {
    /// The table it stands in.
    package let table: String
    /// Its serial, number, or delivery ID.
    package let key: String
    /// What about it cannot be read; nothing of its content.
    package let reason: String

    package init(table: String, key: String, reason: String) {
        self.table = table
        self.key = key
        self.reason = reason
    }
}

/// The rows that could not be read since the store was opened, each once.
///
/// Whoever watches the store tells of them. A lock: all is short.
package final class UnreadableRows: Sendable {
    /// How many are remembered; more are set aside like these, but not reported one by one.
    private static let limit = 10_000

    private struct State {
        var known: Set<UnreadableRow> = []
        var news: [UnreadableRow] = []
        package var deliveries: Set<DeliveryID> = []
    }

    private let state = Mutex(State())

    /// Knows of none.
    package init() {}

    /// How many were found, as far as they are remembered.
    package var count: Int { state.withLock { $0.known.count } }

    /// The rows that were found since the last call.
    package func takeNews() -> [UnreadableRow] {
        state.withLock { state in
            defer { state.news = [] }
            return state.news
        }
    }

    /// The retries among them, which nobody takes up any more.
    package var deliveries: Set<DeliveryID> { state.withLock { $0.deliveries } }

    /// Remembers a retry that nobody must take up any more.
    package func hold(_ id: DeliveryID) {
        state.withLock { state in
            if state.deliveries.count < Self.limit { state.deliveries.insert(id) }
        }
    }

    /// Remembers a row, unless it is known.
    package func note(_ row: UnreadableRow) {
        state.withLock { state in
            guard state.known.count < Self.limit, state.known.insert(row).inserted else { return }
            state.news.append(row)
        }
    }
}
