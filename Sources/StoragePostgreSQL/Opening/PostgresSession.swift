import PostgresLink
import Storage

/// Makes connections with the settings that the store's guarantees need.
struct PostgresSession: Sendable {
    /// The place of the store.
    let place: PostgresPlace
    /// A clock: the time since some fixed moment.
    let watch: @Sendable () -> Duration
    /// The application name of this process's connections, by which another owner can end them.
    let name: String
    private let shortage = ConnectionShortage()
    private let hosts = HostLooks()
    private let end = ConnectingEnd()
    private let standby = StandbyRequirement()

    /// The oldest server version that has all features in use.
    static let oldestVersion = 140_000
    /// The server's limits for a statement and for the wait for a lock.
    static let limits = "SET statement_timeout = '10s'; SET lock_timeout = '5s'"
    /// Keeps the server from ending idle connections.
    static let idleLimit = "SET idle_session_timeout = 0"
    /// The limit for readers, which compute values from many rows within a transaction.
    ///
    /// On a starved machine that takes longer than a writer may be idle. A reader holds no lock
    /// that others wait for.
    static let readingLimits = "SET idle_in_transaction_session_timeout = '60s'"
    /// The planner settings for writers, whose statements find few rows each, by an index.
    ///
    /// The planner does not know the value of a `LIMIT` parameter, and assumes a tenth of the
    /// table. To prune a thousand rows it would read the whole table for a join, while all writers
    /// wait.
    static let writingPlans = "SET enable_hashjoin = off; SET enable_mergejoin = off"
    /// How long a round trip may take before the connection is given up.
    ///
    /// It is longer than the server's statement limit, so that the server's own error comes first.
    static let patience = Duration.seconds(15)

    /// Why no connection could be made recently, if the server had none left.
    var shortageOfConnections: String? { shortage.reason(at: watch()) }

    /// Records that the process is ending, and has only some seconds for a server that does not
    /// answer.
    func expectEnd() { end.expect() }

    /// Whether the process is ending.
    var isEndExpected: Bool { end.isExpected }

    /// Connects, applies the settings and checks the server.
    ///
    /// It blocks.
    ///
    /// - Throws: ``StorageError`` if this server cannot keep the store's guarantees.
    func connect() throws(StorageError) -> PostgresConnection {
        guard !end.hasCome else {
            throw refusal("\(PostgresError.unreachable), and the relay is shutting down")
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
            // This would limit whole transactions, and a copy or a check takes longer.
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

    /// Connects without applying settings or checking the server.
    ///
    /// It blocks.
    ///
    /// - Throws: ``PostgresError``; ``StorageError/inaccessible(path:reason:)`` if the process has
    ///   no file descriptor left.
    func reach() throws -> PostgresConnection {
        guard let wake = PostgresWake() else {
            throw StorageError.inaccessible(
                path: "\(place)", reason: "the process has no file descriptor left")
        }
        return try reach(parameters, wake)
    }

    /// The connection parameters for libpq, with all hosts.
    private var parameters: [String: String] {
        var all = place.target.parameters(isReplication: false, authorities: place.authorities)
        all["application_name"] = name
        return all
    }

    /// The connection parameters for libpq, once for each host.
    ///
    /// If the URL leaves the hosts to a service file or to the environment, they are known only
    /// after the first connection.
    private var byHost: [[String: String]] {
        place.target.byHost(parameters.merging(hosts.named) { given, _ in given })
    }

    /// Connects to a host that accepts writes.
    ///
    /// If a host refuses connections or does not answer, libpq tries the next. It does not if a
    /// host accepts the connection and closes it, as the proxy of a server that is down does. In
    /// that case each host is tried alone.
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
            "the server is PostgreSQL \(connection.serverVersion / 10_000), but 14 is the oldest "
                + "supported version: upgrade it")
    }

    /// Returns a connection to the server that is the current primary.
    ///
    /// Of several hosts libpq takes the first that accepts writes. That may be a former primary
    /// that was started again after a standby was promoted. It lacks everything acknowledged since,
    /// and what is written to it will be lost. Its timeline has a lower number. If two servers have
    /// diverged on the same timeline number, neither is used.
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

    /// The error if only a former primary answers, which was replaced by a promoted server.
    static let formerPrimary =
        "the server that answers was the primary until another server was promoted: start the "
        + "promoted server and make this one its standby; or, to go on with this one, restart the "
        + "relay without the other"

    /// The error if two servers accept writes and have diverged, and neither was promoted later.
    static let forked =
        "two of the named servers accept writes independently, as if both were promoted: stop the "
        + "one that should not continue, and make it a standby of the other"

    /// Connects to a host to find out whether it is the current primary; `nil` if it does not
    /// accept writes.
    ///
    /// The time for a host that does not answer is the shortest that libpq allows.
    private func look(at host: [String: String]) -> PostgresConnection? {
        guard let wake = PostgresWake() else { return nil }
        let patience = ["connect_timeout": "2"]
        let other = try? PostgresConnection(
            host.merging(patience) { $1 }, wake: wake, watch: watch, isStopped: { false })
        other?.timeline = try? other?.askTimeline()
        return other
    }

    /// Whether there are several hosts, so that another one may be promoted.
    var hasSeveralHosts: Bool { byHost.count > 1 }

    /// Checks whether one of the hosts was promoted, even while the former primary keeps running.
    ///
    /// It blocks.
    func lookAtHosts() {
        let seen = SeenTimeline.of(place.target)
        let found = byHost.compactMap { look(at: $0)?.timeline }
        for timeline in found where seen.isNews(timeline) { _ = seen.goOn(with: timeline) }
        let last = found.filter { !seen.isPast($0) }
        seen.note(isForked: last.contains { one in last.contains { $0.isForked(from: one) } })
    }

    /// Returns whether a connection's server is still the primary, and has the standby that is
    /// required, as far as this process knows.
    func isCurrent(_ connection: PostgresConnection) -> Bool {
        guard !standby.isBroken else { return false }
        return connection.timeline.map { !SeenTimeline.of(place.target).isPast($0) } ?? true
    }

    /// Checks that commits wait for a synchronous standby, if one is required.
    ///
    /// If they do not, every connection of this session is given up before its next use.
    func checkStandby(
        _ connection: PostgresConnection, within patience: Duration = PostgresSession.patience
    ) throws {
        guard place.requiresStandby else { return }
        let rows = try connection.query(StandbyRequirement.question, within: patience)
        let isThere = rows.first?[0] == "t"
        standby.note(isMissing: !isThere)
        guard isThere else { throw refusal(StandbyRequirement.sentence) }
    }

    /// Returns whether a commit that has just returned waited for a synchronous standby, if one is
    /// required.
    ///
    /// When the server's setting is emptied, all commits that wait for a standby return, without a
    /// warning. Emptying it is what one does while the standby is away.
    func hasStandby(_ pipeline: PostgresPipeline) -> Bool {
        guard place.requiresStandby else { return true }
        let rows = try? pipeline.fetch(StandbyRequirement.question)
        return rows?[0, 0] == .integer(1)
    }

    /// Returns what the operator should know of a server that can be used; `nil` if nothing.
    static func advice(_ connection: PostgresConnection) throws -> String? {
        let rows = try connection.query("SELECT current_setting('data_checksums')")
        guard rows.first?[0] == "off" else { return nil }
        return "the server keeps no checksums of its pages, and may not notice that its disk "
            + "damages them: run pg_checksums --enable while it is stopped"
    }

    /// The SQL that sets a connection up; it runs after connecting, because poolers ignore startup
    /// options.
    ///
    /// Statements are planned once and kept. With sequential scans disabled, a plan made while a
    /// table is empty is also right when it is large. A server on Windows cannot check whether its
    /// client is still connected.
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

    /// Checks that acknowledged commits would survive on this server.
    private func check(_ connection: PostgresConnection) throws {
        let rows = try connection.query(
            """
            SELECT current_setting('server_encoding'), current_setting('fsync'),
                current_setting('full_page_writes'), current_setting('synchronous_commit'),
                pg_is_in_recovery()::text, pg_backend_pid()::text
            """)
        let found = rows.first?.map { $0 ?? "" } ?? []
        guard found.count == 6 else { throw refusal("the server does not report its settings") }
        guard found[0] == "UTF8" else {
            throw refusal(
                "the database's encoding is \(found[0]), but UTF8 is needed: make another database")
        }
        for (name, value) in [("fsync", found[1]), ("full_page_writes", found[2])]
        where value != "on" {
            throw refusal("\(name) is \(value): what is acknowledged could be lost; set it to on")
        }
        guard ["on", "remote_apply"].contains(found[3]) else {
            throw refusal("synchronous_commit is \(found[3]) and cannot be set to on")
        }
        guard found[4] == "false" else {
            throw refusal("the server is read-only, because it is a standby: name the primary")
        }
        guard found[5] == "\(connection.serverProcess)" else {
            throw refusal(
                "the connection goes through a pooler, such as pgbouncer, which may lose prepared "
                    + "statements: connect to the server itself")
        }
        try checkStandby(connection)
    }

    private func refusal(_ reason: String) -> StorageError {
        .inaccessible(path: "\(place)", reason: reason)
    }
}
