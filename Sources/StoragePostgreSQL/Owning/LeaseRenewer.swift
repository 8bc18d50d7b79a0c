import FoundationEssentials
import Platform
import PostgresLink
import Storage
import StorageSQL
import Synchronization

/// Renews the lease of a store, on a connection and a thread of its own, and tracks the store's
/// size.
///
/// While the server cannot be reached, the lease is not renewed and nothing can be written. Once
/// the server answers again, this process still owns the shard, unless another process has taken it
/// meanwhile.
///
/// Concurrency: a mutex protects the state. Only the thread uses `connection`.
final class LeaseRenewer: @unchecked Sendable {
    private struct State {
        var bytes = 0
        var nodes = 1
        var disagreements: [String] = []
        var isEnding = false
        /// The time of the last renewal, and whether an attempt after it failed.
        var renewed: Duration
        var isAway = false
        /// Why the last renewal failed, if it is known.
        var obstacle: String?
        /// Why other tables than the lease cannot be used, when that was last checked.
        var ungranted: String?
    }

    private let session: PostgresSession
    private let epoch: Int64
    /// The relay that announces itself; `nil` if the owner is not a relay.
    private let claimant: StoreClaimant?
    /// Watches the relays of other stores too; `nil` if there are none.
    private let census: StoreCensus?
    private let lost: @Sendable () -> Void
    private let state: Mutex<State>
    private let wake: PostgresWake
    /// Used only by the thread.
    private var connection: PostgresConnection?

    /// The number of renewals between two counts of the relays, checks of the privileges, and
    /// measurements of the store's size.
    private static let renewalsBetweenCounts = 5
    /// The server's limits for this connection.
    ///
    /// A long lock on a table, such as that of `VACUUM FULL`, must not keep the lease from being
    /// renewed. Nor may a slow query.
    private static let limits = "SET lock_timeout = '500ms'; SET statement_timeout = '1500ms'"
    /// The greatest age of a renewal at which a relay is ready: the pause, and the time that the
    /// next may take.
    private static let oldestRenewal = Ownership.renewal * 3

    /// Creates the renewer of a lease that was just taken; `nil` if the process has no file
    /// descriptor left.
    ///
    /// - Parameters:
    ///   - session: Makes the connections after the first.
    ///   - connection: The connection on which the shard was claimed.
    ///   - epoch: The epoch under which it was claimed.
    ///   - claimant: The owner, which announces itself among the relays; `nil` if it is not a
    ///     relay.
    ///   - census: Watches the relays of other stores too.
    ///   - lost: Called when another process owns the shard.
    init?(
        _ session: PostgresSession, _ connection: PostgresConnection, epoch: Int64,
        as claimant: StoreClaimant? = nil, census: StoreCensus? = nil,
        lost: @escaping @Sendable () -> Void
    ) {
        guard let wake = PostgresWake() else { return nil }
        self.wake = wake
        self.session = session
        self.connection = connection
        self.epoch = epoch
        self.claimant = claimant
        self.census = census
        self.lost = lost
        state = Mutex(State(renewed: session.watch()))
    }

    /// The size of the store in bytes when it was last measured.
    var bytes: Int { state.withLock { $0.bytes } }

    /// The number of relays when they were last counted: the owner and the standby relays.
    var nodes: Int { state.withLock { $0.nodes } }

    /// The differences of other relays' settings when they were last compared.
    var disagreements: [String] { state.withLock { $0.disagreements } }

    /// Whether the lease has expired, so that another process may own the store, for example after
    /// a pause or a network failure.
    var isOver: Bool { session.watch() - state.withLock { $0.renewed } >= Ownership.lease }

    /// Why nothing, or not everything, can be acknowledged at the moment; `nil` if the lease was
    /// renewed recently, and the role has its privileges.
    ///
    /// It decides whether the relay is ready. A process that wakes after a pause also finds out by
    /// it that another may own the shard.
    var absence: String? {
        let last = state.withLock { $0 }
        guard last.isAway || session.watch() - last.renewed > Self.oldestRenewal else {
            return last.ungranted
        }
        return session.shortageOfConnections ?? last.obstacle ?? "the database cannot be reached"
    }

    /// Starts the thread; `ended` is called once the shard is released.
    func start(ended: @escaping @Sendable () -> Void) {
        startThread(named: "belfry.lease") { [self] in
            run()
            connection = nil
            ended()
        }
    }

    /// Releases the shard, and ends the thread.
    func end() {
        state.withLock { $0.isEnding = true }
        wake.signal()
    }

    private func run() {
        _ = try? connection?.query(Self.limits, within: Ownership.renewal * 2)
        var renewals = 0
        while !state.withLock({ $0.isEnding }) {
            do {
                let connection = try connected()
                try session.checkStandby(connection, within: Ownership.renewal * 2)
                let asked = session.watch()
                guard try Ownership.renew(epoch: epoch, by: session.name, connection) else {
                    lost()
                    return
                }
                state.withLock { ($0.renewed, $0.isAway, $0.obstacle) = (asked, false, nil) }
                try lookAround(after: renewals, since: asked, connection)
                renewals += 1
            } catch {
                // It is tried again, until another process owns the shard.
                connection = nil
                let obstacle = PostgresSession.obstacle(of: error)
                state.withLock { ($0.isAway, $0.obstacle) = (true, obstacle) }
            }
            wake.wait(for: Ownership.renewal)
        }
        // If the server does not answer, the lease expires on its own, and the end does not wait
        // for it.
        if !state.withLock({ $0.isAway }), let connection = try? connected() {
            try? Ownership.release(epoch: epoch, by: session.name, connection)
            if let claimant { try? RelayNodes.leave(claimant, connection) }
        }
    }

    /// Announces the relay, and sometimes runs the other queries of the heartbeat.
    private func lookAround(
        after renewals: Int, since asked: Duration, _ connection: PostgresConnection
    ) throws {
        do {
            if let claimant { try RelayNodes.announce(claimant, connection) }
            if let census, renewals.isMultiple(of: StoreCensus.beatsBetweenLooks), hasTime(asked) {
                try census.look(connection)
            }
            if renewals.isMultiple(of: Self.renewalsBetweenCounts), hasTime(asked) {
                try count(connection)
                if hasTime(asked) { try measure(connection) }
            }
        } catch let error as PostgresError where error.verdict == .busy {
            // The table is locked by another session. The old findings stay until a later beat.
            return
        }
    }

    /// Returns whether a beat that began at `asked` may run more queries.
    ///
    /// A slow server must use its time for the leases.
    private func hasTime(_ asked: Duration) -> Bool {
        session.watch() - asked < Ownership.renewal / 2
    }

    private func count(_ connection: PostgresConnection) throws {
        let nodes = try RelayNodes.count(connection)
        let disagreements =
            try claimant.map { try RelayNodes.disagreements(with: $0, connection) } ?? []
        let lacking = try NeededPrivileges.lacking(in: session.place.schema, connection)
        state.withLock {
            ($0.nodes, $0.disagreements) = (max(1, nodes), disagreements)
            $0.ungranted = lacking?.obstacle
        }
    }

    /// Measures the tables of the schema with their indexes and TOAST tables.
    ///
    /// The server asks its file system for the size of each file: some 1400 calls and 10 ms for an
    /// empty store, and one more call for each further GiB. It reads no page of a table. A
    /// partitioned table has no files; its partitions are tables themselves.
    private func measure(_ connection: PostgresConnection) throws {
        let rows = try connection.query(
            """
            SELECT coalesce(sum(pg_total_relation_size(entity.oid)), 0)::bigint
            FROM pg_catalog.pg_class AS entity
            WHERE relnamespace = $1::regnamespace AND relkind = 'r'
            """, ["\"\(session.place.schema)\""], within: Ownership.renewal * 2)
        let bytes = rows.first?[0].flatMap { Int($0) } ?? 0
        state.withLock { $0.bytes = bytes }
    }

    private func connected() throws -> PostgresConnection {
        if let connection, session.isCurrent(connection) { return connection }
        let connection = try session.connect()
        try connection.query(Self.limits)
        self.connection = connection
        return connection
    }
}
