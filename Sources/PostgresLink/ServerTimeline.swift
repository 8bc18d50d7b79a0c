#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// The timeline of a server: each promotion of a standby begins another one, with a higher number.
package struct ServerTimeline: Sendable, Hashable {
    /// The system identifier, which a server and all its standbys share, however often they were
    /// promoted.
    package let cluster: String
    /// The number of the timeline; the first is 1.
    package let number: Int64
    /// The start time of the server, by its clock, which distinguishes servers that run at the same
    /// time.
    package let begun: String

    package init(cluster: String, number: Int64, begun: String = "") {
        self.cluster = cluster
        self.number = number
        self.begun = begun
    }

    /// Returns whether two servers have diverged on the same timeline, as after both were promoted
    /// from one.
    ///
    /// It is impossible to tell which of them has what the other lacks.
    package func isForked(from other: ServerTimeline) -> Bool {
        cluster == other.cluster && number == other.number && begun != other.begun
    }
}

extension PostgresConnection {
    /// Asks the server for its timeline; `nil` if the server is a standby, or does not say.
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
            // Some providers do not allow this query.
            return nil
        }
    }

    /// The hosts that were configured, under libpq's parameter names, whether by the URL, a service
    /// file or the environment.
    package var hosts: [String: String] {
        guard let options = PQconninfo(handle) else { return [:] }
        defer { PQconninfoFree(options) }
        return PostgresTarget.values(options)
            .filter { ["host", "hostaddr", "port"].contains($0.key) }
    }

    /// Returns whether the connection is to this host, which is one of
    /// ``PostgresTarget/byHost(_:)``.
    package func isAt(_ one: [String: String]) -> Bool {
        let (host, port) = (String(cString: PQhost(handle)), String(cString: PQport(handle)))
        return (one["host"] ?? one["hostaddr"] ?? host) == host && (one["port"] ?? port) == port
    }
}
