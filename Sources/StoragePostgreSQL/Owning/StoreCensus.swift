import PostgresLink
package import StorageSQL
import Synchronization

/// Watches which relays of a service's stores are running, with the heartbeat of one relay's lease.
///
/// It keeps what the last look found. Concurrency: a look runs on the thread of a connection; any
/// thread may read the result.
package final class StoreCensus: Sendable {
    /// The findings of the looks so far.
    package struct Sight: Sendable, Hashable {
        /// The result of the last look; `nil` before the first, or if it failed.
        package var view: StoreView?
        /// The number of looks so far.
        package var looks: UInt64 = 0
        /// Why the last look failed, in the server's words.
        package var failure: String?

        package init(view: StoreView? = nil, looks: UInt64 = 0, failure: String? = nil) {
            self.view = view
            self.looks = looks
            self.failure = failure
        }
    }

    /// A statement that was prepared on the server.
    private struct Prepared: Equatable {
        /// The process ID of the server's session that has it.
        let process: Int
        /// The schemas that it queries.
        let schemas: [String]
    }

    /// The schemas of all stores.
    let schemas: [String]
    private let state = Mutex(Sight())
    /// The prepared statement; for many stores, planning takes longer than everything else.
    private let prepared = Mutex<Prepared?>(nil)

    /// The number of beats from one look to the next.
    static let beatsBetweenLooks = 2

    /// Creates a census of the stores in `schemas`, before its first look.
    package init(of schemas: [String]) { self.schemas = schemas }

    /// The findings of the looks so far.
    package var sight: Sight { state.withLock { $0 } }

    /// Looks once; a statement that the server refuses counts as a look without a result.
    ///
    /// - Throws: ``PostgresError`` if the connection is lost.
    @discardableResult func look(_ connection: PostgresConnection) throws -> StoreView? {
        do {
            let view = try ask(connection)
            note(view, nil)
            return view
        } catch let error as PostgresError {
            note(nil, error.message)
            // For example, a store has another version, a privilege is missing, or a table is
            // locked.
            guard error.verdict == .lost else {
                forget(connection)
                return nil
            }
            throw error
        }
    }

    private func ask(_ connection: PostgresConnection) throws -> StoreView {
        let there = try StoreView.found(schemas, connection)
        guard !there.isEmpty else { return StoreView(of: schemas, []) }
        let wanted = Prepared(process: connection.serverProcess, schemas: there)
        let known = prepared.withLock { $0 }
        if let known, known.process == wanted.process, known != wanted { forget(connection) }
        if known != wanted {
            try StoreView.run(
                "PREPARE belfryStores AS \(StoreView.statement(about: there))", connection)
            prepared.withLock { $0 = wanted }
        }
        return try StoreView.ask("EXECUTE belfryStores", of: schemas, connection)
    }

    /// Drops the prepared statement, so that the next look plans it again.
    private func forget(_ connection: PostgresConnection) {
        _ = try? connection.query("DEALLOCATE belfryStores", within: Ownership.renewal)
        prepared.withLock { $0 = nil }
    }

    private func note(_ view: StoreView?, _ failure: String?) {
        state.withLock { $0 = Sight(view: view, looks: $0.looks + 1, failure: failure) }
    }
}

extension RelayStore {
    /// Returns the relays of all stores that are spread over machines together with the store at
    /// `place`; `nil` if none are.
    ///
    /// - Throws: ``StorageError`` if the server cannot be queried, or a store is of another
    ///   version.
    package static func view(from place: PostgresPlace) throws -> StoreView? {
        do {
            let connection = try PostgresSession(place: place, name: "belfry nodes").connect()
            let rows = try connection.query(
                """
                SELECT stores FROM relayNode WHERE stores IS NOT NULL
                ORDER BY seen DESC, session LIMIT 1
                """)
            guard let list = rows.first?[0] else { return nil }
            return try StoreView.look(
                at: list.split(separator: ",").map(String.init), connection)
        } catch let error as PostgresError {
            throw error.opening(place)
        }
    }
}
