package import RelayModel
import Synchronization

/// A row that exists but does not hold what Belfry writes.
///
/// Only this row is skipped; a reader of many rows continues with the others.
package struct UnreadableRow: Sendable, Hashable {
    /// The row's table.
    package let table: String
    /// The row's serial, number, or delivery ID.
    package let key: String
    /// What about the row cannot be read.
    ///
    /// It contains nothing of the row's content.
    package let reason: String

    package init(table: String, key: String, reason: String) {
        self.table = table
        self.key = key
        self.reason = reason
    }
}

/// The rows that could not be read since the store was opened, each once.
///
/// The code that watches the store reports them. A lock suffices, because every access is short.
package final class UnreadableRows: Sendable {
    /// The maximum number of remembered rows.
    ///
    /// Further ones are skipped too, but not reported one by one.
    private static let limit = 10_000

    private struct State {
        var known: Set<UnreadableRow> = []
        var news: [UnreadableRow] = []
        package var deliveries: Set<DeliveryID> = []
    }

    private let state = Mutex(State())

    /// Creates an empty list.
    package init() {}

    /// The number of unreadable rows found, as far as they are remembered.
    package var count: Int { state.withLock { $0.known.count } }

    /// The rows that were found since the last call.
    package func takeNews() -> [UnreadableRow] {
        state.withLock { state in
            defer { state.news = [] }
            return state.news
        }
    }

    /// The unreadable retries, which must not be attempted any more.
    package var deliveries: Set<DeliveryID> { state.withLock { $0.deliveries } }

    /// Remembers a retry that must not be attempted any more.
    package func hold(_ id: DeliveryID) {
        state.withLock { state in
            if state.deliveries.count < Self.limit { state.deliveries.insert(id) }
        }
    }

    /// Remembers a row unless it is already known.
    package func note(_ row: UnreadableRow) {
        state.withLock { state in
            guard state.known.count < Self.limit, state.known.insert(row).inserted else { return }
            state.news.append(row)
        }
    }
}
