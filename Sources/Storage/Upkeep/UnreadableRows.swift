import GRDB
import RelayModel
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
}

extension UnreadableRow {
    /// By what a row of any table is named to people: its delivery ID, serial, or number.
    static func key(of row: Row) -> String {
        if row.hasColumn("deliveryID") {
            return DeliveryID(stored: row["deliveryID"])?.description ?? "?"
        }
        let number: Int64 = row.hasColumn("serial") ? row["serial"] : row["id"]
        return "\(number)"
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
        var deliveries: Set<DeliveryID> = []
    }

    private let state = Mutex(State())

    /// The rows that were found since the last call.
    package func takeNews() -> [UnreadableRow] {
        state.withLock { state in
            defer { state.news = [] }
            return state.news
        }
    }

    /// The retries among them, which nobody takes up any more.
    var deliveries: Set<DeliveryID> { state.withLock { $0.deliveries } }

    /// What `read` makes of a row; `nil`, and remembered, if the row cannot be read.
    ///
    /// - Throws: What `read` throws, except ``StorageError/damaged(path:reason:)``.
    func value<Value>(
        of row: Row, in table: String, _ read: (Row) throws -> Value
    ) throws -> Value? {
        do {
            return try read(row)
        } catch StorageError.damaged(_, let reason) {
            note(UnreadableRow(table: table, key: UnreadableRow.key(of: row), reason: reason))
            return nil
        }
    }

    /// What `read` makes of those of `rows` that can be read.
    func readable<Value>(
        _ rows: [Row], in table: String, _ read: (Row) throws -> Value
    ) throws -> [Value] {
        try rows.compactMap { try value(of: $0, in: table, read) }
    }

    /// Remembers a retry that nobody must take up any more.
    func hold(_ id: DeliveryID) {
        state.withLock { state in
            if state.deliveries.count < Self.limit { state.deliveries.insert(id) }
        }
    }

    /// Remembers a row, unless it is known.
    func note(_ row: UnreadableRow) {
        state.withLock { state in
            guard state.known.count < Self.limit, state.known.insert(row).inserted else { return }
            state.news.append(row)
        }
    }
}
