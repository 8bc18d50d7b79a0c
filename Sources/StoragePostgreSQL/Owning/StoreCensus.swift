import PostgresLink
package import StorageSQL
import Synchronization

/// Looks which relays of all stores of a service are there, with the beat of a relay's lease, and
/// knows what the last look found.
///
/// Concurrency: looks happen on the thread of a connection; any thread may ask.
package final class StoreCensus: Sendable {
    /// What is known.
    package struct Sight: Sendable, Hashable {
        /// What the last look found; `nil` before the first, or if it failed.
        package var view: StoreView?
        /// How many looks there were.
        package var looks: UInt64 = 0
        /// Why the last one found nothing, in the server's words.
        package var failure: String?

        package init(view: StoreView? = nil, looks: UInt64 = 0, failure: String? = nil) {
            self.view = view
            self.looks = looks
            self.failure = failure
        }
    }

    /// A statement that the server has planned.
    private struct Prepared: Equatable {
        /// The process of the server that has it.
        let process: Int
        /// The stores that it asks for.
        let schemas: [String]
    }

    /// The schemas of all stores.
    let schemas: [String]
    private let state = Mutex(Sight())
    /// Planning it for many stores takes the server longer than all the rest.
    private let prepared = Mutex<Prepared?>(nil)

    /// How many beats pass from one look to the next.
    static let beatsBetweenLooks = 2

    /// Has not looked yet at the stores in `schemas`.
    package init(of schemas: [String]) { self.schemas = schemas }

    /// What the last look found.
    package var sight: Sight { state.withLock { $0 } }

    /// Looks once; what the server refuses is a look that found nothing.
    ///
    /// - Throws: ``PostgresError`` if the connection is lost.
    @discardableResult func look(_ connection: PostgresConnection) throws -> StoreView? {
        do {
            let view = try ask(connection)
            note(view, nil)
            return view
        } catch let error as PostgresError {
            note(nil, error.message)
            // A store of another version, a right that is missing, a lock that somebody has.
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

    /// Has the server plan anew the next time.
    private func forget(_ connection: PostgresConnection) {
        _ = try? connection.query("DEALLOCATE belfryStores", within: Ownership.renewal)
        prepared.withLock { $0 = nil }
    }

    private func note(_ view: StoreView?, _ failure: String?) {
        state.withLock { $0 = Sight(view: view, looks: $0.looks + 1, failure: failure) }
    }
}

extension RelayStore {
    /// The relays of all stores that those of the store at `place` spread over machines; `nil` if
    /// they spread none.
    ///
    /// - Throws: ``StorageError`` if the server cannot be asked, or a store is of another version.
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
