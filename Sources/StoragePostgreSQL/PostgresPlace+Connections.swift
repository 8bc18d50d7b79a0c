import FoundationEssentials
import Glibc
import Platform
import PostgresLink
package import Storage

extension PostgresPlace {
    /// How often is looked, and how long it waits in between, until the server has let go of
    /// connections that were ended.
    private static let looks = (count: 50, pause: Duration.milliseconds(20))

    /// Sees whether the server has as many connections left as a relay needs: with fewer it would
    /// start, and then neither read nor write.
    ///
    /// It blocks, and leaves none behind. `more` are needed besides by a relay that has several
    /// shards to look at.
    ///
    /// - Throws: ``StorageError`` if the server cannot be used, or has fewer.
    package func checkConnections(
        for settings: StoreSettings = StoreSettings(), besides more: Int = 0
    ) throws(StorageError) {
        // While it starts, a relay has those of the owner, and one.
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
                reason: "the server has \(others.count + 1) of the \(needed) "
                    + "connections left that a relay needs (\(error.message)): raise "
                    + "max_connections, or the limit of the role or the database, or end others")
        } catch let error as PostgresError {
            throw error.opening(self)
        } catch {
            throw .inaccessible(path: "\(self)", reason: "\(error)")
        }
    }

    /// Waits until the server has ended its processes: until then it counts their connections, of
    /// which the relay needs as many at once.
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
