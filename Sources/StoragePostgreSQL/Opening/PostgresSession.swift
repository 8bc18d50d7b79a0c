import PostgresLink
import Storage

/// Makes connections that are set up as the store's promises need them.
struct PostgresSession: Sendable {
    /// Where the store is.
    let place: PostgresPlace
    /// How much time has passed.
    let watch: @Sendable () -> Duration
    /// What the server calls the connections of this process, so that they can be ended.
    let name: String
    private let shortage = ConnectionShortage()
    private let hosts = HostLooks()
    private let end = ConnectingEnd()

    /// The oldest version that has all that is used.
    static let oldestVersion = 140_000
    /// How long the server lets a statement take, and wait for a lock.
    static let limits = "SET statement_timeout = '10s'; SET lock_timeout = '5s'"
    /// A connection that waits for work is not ended.
    static let idleLimit = "SET idle_session_timeout = 0"
    /// For whoever only reads, and makes values of many rows meanwhile, which on a starved machine
    /// takes longer than a writer may be idle: it holds no lock that anybody waits for.
    static let readingLimits = "SET idle_in_transaction_session_timeout = '60s'"
    /// For whoever writes: its statements find few rows each, by an index.
    ///
    /// How many a `LIMIT` is that comes as a parameter the planner does not know, and takes a tenth
    /// of the table: for a thousand rows that are pruned it would read all that there are, to join
    /// them with those, while everybody waits to write.
    static let writingPlans = "SET enable_hashjoin = off; SET enable_mergejoin = off"
    /// How long a round trip may take before the connection is given up: more than the server lets
    /// a statement take, so that its own answer comes first.
    static let patience = Duration.seconds(15)

    /// Why no connection could be made a moment ago, if the server had none left.
    var shortageOfConnections: String? { shortage.reason(at: watch()) }

    /// Says that the process ends, and has only some seconds for a server that is away.
    func expectEnd() { end.expect() }

    /// Whether the process ends.
    var isEndExpected: Bool { end.isExpected }

    /// Connects, and looks at the server.
    ///
    /// It blocks.
    ///
    /// - Throws: ``StorageError`` if a promise could not be kept on this server.
    func connect() throws(StorageError) -> PostgresConnection {
        guard !end.hasCome else {
            throw refusal("\(PostgresError.unreachable), and the relay ends")
        }
        let began = watch()
        do {
            let first = try reach()
            end.note(failedAfter: nil)
            shortage.end()
            try checkVersion(first)
            let connection = try latest(first)
            try checkVersion(connection)
            try connection.query(settings)
            // A limit of whole transactions, which a copy or a check outlasts.
            if connection.serverVersion >= 170_000 {
                try connection.query("SET transaction_timeout = 0")
            }
            try check(connection)
            return connection
        } catch let error as StorageError {
            throw error
        } catch let error as PostgresError {
            end.note(failedAfter: watch() - began)
            shortage.note(error, at: watch())
            throw error.opening(place)
        } catch {
            throw .inaccessible(path: "\(place)", reason: "\(error)")
        }
    }

    /// Connects, and sets nothing up.
    ///
    /// It blocks.
    ///
    /// - Throws: ``PostgresError``; ``StorageError/inaccessible(path:reason:)`` if the process has
    ///   no descriptor left.
    func reach() throws -> PostgresConnection {
        guard let wake = PostgresWake() else {
            throw StorageError.inaccessible(
                path: "\(place)", reason: "the process has no descriptor left")
        }
        return try reach(parameters, wake)
    }

    /// What libpq is told of all hosts.
    private var parameters: [String: String] {
        var all = place.target.parameters(isReplication: false, authorities: place.authorities)
        all["application_name"] = name
        return all
    }

    /// What libpq is told, once for each host alone; where the URL leaves them to a service or to
    /// the environment, they are known after the first connection.
    private var byHost: [[String: String]] {
        place.target.byHost(parameters.merging(hosts.named) { given, _ in given })
    }

    /// Connects to the host that can be written to.
    ///
    /// libpq goes on to the next host if one refuses connections or does not answer; but not if
    /// one takes the connection and closes it, as the proxy of a server that is away does. So each
    /// is tried by itself then.
    private func reach(
        _ parameters: [String: String], _ wake: PostgresWake
    ) throws -> PostgresConnection {
        do {
            let connection = try PostgresConnection(
                parameters, wake: wake, watch: watch, isStopped: { false })
            hosts.note(connection.hosts)
            return connection
        } catch let error as PostgresError where error.isCutOff {
            for host in byHost.dropFirst() {
                let connection = try? PostgresConnection(
                    host, wake: wake, watch: watch, isStopped: { false })
                if let connection { return connection }
            }
            throw error
        }
    }

    private func checkVersion(_ connection: PostgresConnection) throws(StorageError) {
        guard connection.serverVersion < Self.oldestVersion else { return }
        throw refusal(
            "the server is PostgreSQL \(connection.serverVersion / 10_000), and 14 is the oldest "
                + "that will do: upgrade it")
    }

    /// The connection to the server that is the primary by now.
    ///
    /// Of several hosts libpq takes the first that can be written to. That may be a primary in
    /// whose place a standby was promoted, and that somebody, or its machine, has started again:
    /// what was acknowledged since is not there, and what it takes is lost. Its history has a lower
    /// number. Of two with the same number neither is gone on with.
    private func latest(_ first: PostgresConnection) throws -> PostgresConnection {
        first.timeline = try first.askTimeline()
        guard let own = first.timeline else { return first }
        let seen = SeenTimeline.of(place.target)
        var best = (connection: first, timeline: own)
        let isTold = seen.isForked || seen.isPast(own)
        if isTold || (!seen.isNews(own) && hosts.isDue(at: watch())) {
            var isForked = false
            for host in byHost where !first.isAt(host) {
                guard let other = look(at: host), let found = other.timeline,
                    found.cluster == own.cluster
                else { continue }
                if found.number > best.timeline.number {
                    best = (other, found)
                    isForked = false
                } else if found.isForked(from: best.timeline) {
                    isForked = true
                }
            }
            seen.note(isForked: isForked)
        }
        guard seen.goOn(with: best.timeline) else { throw refusal(Self.formerPrimary) }
        guard !seen.isForked else { throw refusal(Self.forked) }
        return best.connection
    }

    /// What is told where no other server answers than one in whose place another was promoted.
    static let formerPrimary =
        "the server that answers was the primary before another was promoted: start that one, and "
        + "make this one its standby; or if this one is to go on, restart the relay without the "
        + "other"

    /// What is told where two servers take what is written, and neither was promoted later.
    static let forked =
        "two of the servers that are named take what is written, each for itself, as after both "
        + "were promoted: end the one that is not to go on, and make it the other's standby"

    /// Connects to a host to see whether it is the primary by now; `nil` if it cannot be written
    /// to.
    ///
    /// One whose machine is gone is not waited for any longer than libpq waits at the least.
    private func look(at host: [String: String]) -> PostgresConnection? {
        guard let wake = PostgresWake() else { return nil }
        let patience = ["connect_timeout": "2"]
        let other = try? PostgresConnection(
            host.merging(patience) { $1 }, wake: wake, watch: watch, isStopped: { false })
        other?.timeline = try? other?.askTimeline()
        return other
    }

    /// Whether there are several hosts, of which another may be promoted.
    var hasSeveralHosts: Bool { byHost.count > 1 }

    /// Looks whether one of the hosts was promoted, also while the primary before it goes on.
    ///
    /// It blocks.
    func lookAtHosts() {
        let seen = SeenTimeline.of(place.target)
        let found = byHost.compactMap { look(at: $0)?.timeline }
        for timeline in found where seen.isNews(timeline) { _ = seen.goOn(with: timeline) }
        let last = found.filter { !seen.isPast($0) }
        seen.note(isForked: last.contains { one in last.contains { $0.isForked(from: one) } })
    }

    /// Whether a connection is to a server that is the primary still, as far as this process knows.
    func isCurrent(_ connection: PostgresConnection) -> Bool {
        connection.timeline.map { !SeenTimeline.of(place.target).isPast($0) } ?? true
    }

    /// What is set after connecting: poolers ignore what is asked for at connecting.
    ///
    /// Statements are planned once and kept: with scans of whole tables made dear, a plan that was
    /// made while a table was empty is the one that it needs when it is large. A server on Windows
    /// cannot look whether its client is there still.
    private var settings: String {
        """
        SET search_path = "\(place.schema)", pg_temp;
        SET client_min_messages = warning;
        SET standard_conforming_strings = on;
        SET default_transaction_isolation = 'read committed';
        \(Self.limits);
        SET idle_in_transaction_session_timeout = '3s';
        \(Self.idleLimit);
        SET tcp_user_timeout = '10s';
        SET jit = off;
        SET plan_cache_mode = force_generic_plan;
        SET enable_seqscan = off;
        SELECT set_config('client_connection_check_interval', '5s', false)
        WHERE version() !~* 'windows|msvc|visual c|mingw';
        SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
        """
    }

    /// Looks whether what is acknowledged would last.
    private func check(_ connection: PostgresConnection) throws {
        let rows = try connection.query(
            """
            SELECT current_setting('server_encoding'), current_setting('fsync'),
                current_setting('full_page_writes'), current_setting('synchronous_commit'),
                pg_is_in_recovery()::text, pg_backend_pid()::text
            """)
        let found = rows.first?.map { $0 ?? "" } ?? []
        guard found.count == 6 else { throw refusal("the server does not say how it works") }
        guard found[0] == "UTF8" else {
            throw refusal(
                "the database's encoding is \(found[0]), and UTF8 is needed: make another")
        }
        for (name, value) in [("fsync", found[1]), ("full_page_writes", found[2])]
        where value != "on" {
            throw refusal("\(name) is \(value): what is acknowledged could be lost; set it to on")
        }
        guard ["on", "remote_apply"].contains(found[3]) else {
            throw refusal("synchronous_commit is \(found[3]) and cannot be set to on")
        }
        guard found[4] == "false" else {
            throw refusal("the server only reads, because it is a standby: name the primary")
        }
        guard found[5] == "\(connection.serverProcess)" else {
            throw refusal(
                "a pooler is between, as pgbouncer is, which may lose what the relay prepares: "
                    + "connect to the server itself")
        }
    }

    private func refusal(_ reason: String) -> StorageError {
        .inaccessible(path: "\(place)", reason: reason)
    }
}
