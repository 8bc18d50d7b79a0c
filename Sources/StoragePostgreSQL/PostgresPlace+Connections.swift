import FoundationEssentials
import Glibc
import Platform
import PostgresLink
package import Storage

extension PostgresPlace {
    /// How often, and at what interval, the server is asked whether it has ended closed
    /// connections.
    private static let looks = (count: 50, pause: Duration.milliseconds(20))

    /// Checks that the server has as many connections left as a relay needs.
    ///
    /// With fewer the relay would start, and then neither read nor write. It blocks, and closes its
    /// connections at the end. `more` connections are needed besides by a relay that has several
    /// shards to watch.
    ///
    /// - Throws: ``StorageError`` if the server cannot be used, or has too few connections.
    package func checkConnections(
        for settings: StoreSettings = StoreSettings(), besides more: Int = 0
    ) throws(StorageError) {
        // While it starts, a relay has the connections of an owner, and one more.
        let needed = ServerEngine.connectionCount(settings) + 1 + more
        let session = PostgresSession(place: self, name: "belfry")
        let first = try session.connect()
        var others: [PostgresConnection] = []
        do {
            while others.count + 1 < needed { others.append(try session.reach()) }
            let processes = others.map { "\($0.serverProcess)" }.joined(separator: ",")
            others = []
            try awaitEnd(of: "{\(processes)}", first)
        } catch let error as StorageError {
            throw error
        } catch let error as PostgresError where error.isFull {
            throw .inaccessible(
                path: "\(self)",
                reason: "the server has \(others.count + 1) of the \(needed) connections left that "
                    + "a relay needs (\(error.message)): raise max_connections, or the limit of "
                    + "the role or the database, or end other connections")
        } catch let error as PostgresError {
            throw error.opening(self)
        } catch {
            throw .inaccessible(path: "\(self)", reason: "\(error)")
        }
    }

    /// Waits until the server has ended its processes.
    ///
    /// Until then it counts their connections, and the relay needs just as many at once.
    private func awaitEnd(of processes: String, _ connection: PostgresConnection) throws {
        for _ in 0..<Self.looks.count {
            let left = try connection.query(
                "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = ANY ($1::int[]) LIMIT 1",
                [processes])
            if left.isEmpty { return }
            pauseThread(for: Self.looks.pause)
        }
    }
}
