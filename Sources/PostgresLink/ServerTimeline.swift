#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// Which history a server writes: with each promotion of a copy another one begins, of a higher
/// number.
package struct ServerTimeline: Sendable, Hashable {
    /// Copies of a server have this alike, however often they were promoted.
    package let cluster: String
    /// Its number; the first one is 1.
    package let number: Int64
    /// When the server was started, by its clock: tells servers apart that are there at one moment.
    package let begun: String

    package init(cluster: String, number: Int64, begun: String = "") {
        self.cluster = cluster
        self.number = number
        self.begun = begun
    }

    /// Whether two servers write one history, each for itself, as two do that were promoted from
    /// one: which of them has what the other lacks cannot be told.
    package func isForked(from other: ServerTimeline) -> Bool {
        cluster == other.cluster && number == other.number && begun != other.begun
    }
}

extension PostgresConnection {
    /// Asks the server for its history; `nil` if it only follows another server, or does not say.
    package func askTimeline() throws -> ServerTimeline? {
        do {
            let rows = try query(
                """
                SELECT system_identifier::text, CASE WHEN NOT pg_is_in_recovery()
                    THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
                    END, extract(epoch FROM pg_postmaster_start_time())::text
                FROM pg_control_system()
                """)
            guard let row = rows.first, row.count == 3, let cluster = row[0],
                let number = row[1].flatMap({ Int64($0) })
            else { return nil }
            return ServerTimeline(cluster: cluster, number: number, begun: row[2] ?? "")
        } catch let error as PostgresError where !error.state.isEmpty {
            // Some providers let nobody ask.
            return nil
        }
    }

    /// The hosts that were to be tried, by libpq's names for what says so, whoever named them: what
    /// connected, a service, or the environment.
    package var hosts: [String: String] {
        guard let options = PQconninfo(handle) else { return [:] }
        defer { PQconninfoFree(options) }
        return PostgresTarget.values(options)
            .filter { ["host", "hostaddr", "port"].contains($0.key) }
    }

    /// Whether it is one to this host, of those that ``PostgresTarget/byHost(_:)`` names.
    package func isAt(_ one: [String: String]) -> Bool {
        let (host, port) = (String(cString: PQhost(handle)), String(cString: PQport(handle)))
        return (one["host"] ?? one["hostaddr"] ?? host) == host && (one["port"] ?? port) == port
    }
}
