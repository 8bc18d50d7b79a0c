import FoundationEssentials
import Platform
import PostgresLink
import Storage
import StorageSQL
import Synchronization

/// Renews the lease of a store, on a connection and a thread of its own, and knows how much room
/// the store takes.
///
/// While the server cannot be reached the lease is not renewed, and nothing can be written; once it
/// answers again, the shard is owned still unless another process could reach it meanwhile.
final class LeaseRenewer: @unchecked Sendable {
    private struct State {
        var bytes = 0
        var nodes = 1
        var disagreements: [String] = []
        var isEnding = false
        /// When the lease was last renewed, and whether the server could be asked after that.
        var renewed: Duration
        var isAway = false
        /// Why the server, which can be reached, did not renew it.
        var obstacle: String?
    }

    private let session: PostgresSession
    private let epoch: Int64
    /// Who shows itself among the relays; `nil` if it is none.
    private let claimant: StoreClaimant?
    /// Who looks at the relays of other stores too; `nil` if there are none.
    private let census: StoreCensus?
    private let lost: @Sendable () -> Void
    private let state: Mutex<State>
    private let wake: PostgresWake
    /// It belongs to the thread.
    private var connection: PostgresConnection?

    /// How many renewals pass before the store's size is asked for anew.
    private static let renewalsBetweenSizes = 30
    /// How many pass before the relays are counted anew.
    private static let renewalsBetweenCounts = 5
    /// How long anything waits here for a lock: whoever keeps a table for long, as `VACUUM FULL`
    /// does, must not keep the lease from being renewed; nor may a question that takes long.
    private static let limits = "SET lock_timeout = '500ms'; SET statement_timeout = '1500ms'"
    /// How old a renewal may be of a relay that is ready: a pause, and what the next may take.
    private static let oldestRenewal = Ownership.renewal * 3

    /// Keeps a lease that was just taken; `nil` if the process has no descriptor left.
    ///
    /// - Parameters:
    ///   - session: Makes the connections after the first.
    ///   - connection: The connection by which the shard was taken.
    ///   - epoch: The number under which it was taken.
    ///   - claimant: Who owns it, to be shown among its relays; `nil` if it is none.
    ///   - census: Who looks at the relays of other stores too.
    ///   - lost: Is told that another owns the shard.
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

    /// How many bytes the store had when it was last asked for.
    var bytes: Int { state.withLock { $0.bytes } }

    /// How many relays there were when they were last counted: the owner, and who stands by.
    var nodes: Int { state.withLock { $0.nodes } }

    /// What other relays had set otherwise when they were last counted.
    var disagreements: [String] { state.withLock { $0.disagreements } }

    /// Whether another may own the store by now, as of one that was paused, or is cut off.
    var isOver: Bool { session.watch() - state.withLock { $0.renewed } >= Ownership.lease }

    /// Why nothing can be acknowledged at the moment, for whoever asks whether the relay is ready;
    /// `nil` if the lease was renewed lately.
    ///
    /// Also a process that was paused, and wakes, knows by it that another may own the shard.
    var absence: String? {
        let (renewed, isAway, obstacle) = state.withLock { ($0.renewed, $0.isAway, $0.obstacle) }
        guard isAway || session.watch() - renewed > Self.oldestRenewal else { return nil }
        return session.shortageOfConnections ?? obstacle ?? "the database cannot be reached"
    }

    /// Starts the thread; `ended` is called once the shard is given back.
    func start(ended: @escaping @Sendable () -> Void) {
        startThread(named: "belfry.lease") { [self] in
            run()
            connection = nil
            ended()
        }
    }

    /// Gives the shard back, and ends the thread.
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
                let asked = session.watch()
                guard try Ownership.renew(epoch: epoch, by: session.name, connection) else {
                    lost()
                    return
                }
                state.withLock { ($0.renewed, $0.isAway, $0.obstacle) = (asked, false, nil) }
                try lookAround(after: renewals, since: asked, connection)
                renewals += 1
            } catch {
                // It is tried again, as long as nobody else has the shard.
                connection = nil
                let obstacle = PostgresSession.obstacle(of: error)
                state.withLock { ($0.isAway, $0.obstacle) = (true, obstacle) }
            }
            wake.wait(for: Ownership.renewal)
        }
        // Otherwise the lease runs out by itself; who ends waits for no server that is away.
        if !state.withLock({ $0.isAway }), let connection = try? connected() {
            try? Ownership.release(epoch: epoch, by: session.name, connection)
            if let claimant { try? RelayNodes.leave(claimant, connection) }
        }
    }

    /// Shows itself, and asks what is asked with the beat now and then.
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
            }
            if renewals.isMultiple(of: Self.renewalsBetweenSizes), hasTime(asked) {
                try measure(connection)
            }
        } catch let error as PostgresError where error.verdict == .busy {
            // Somebody keeps a table: what is known of it stays until a later beat.
            return
        }
    }

    /// Whether a beat that began at `asked` may ask for more: a server that is slow has enough to
    /// do with the leases.
    private func hasTime(_ asked: Duration) -> Bool {
        session.watch() - asked < Ownership.renewal / 2
    }

    private func count(_ connection: PostgresConnection) throws {
        let nodes = try RelayNodes.count(connection)
        let disagreements =
            try claimant.map { try RelayNodes.disagreements(with: $0, connection) } ?? []
        state.withLock { ($0.nodes, $0.disagreements) = (max(1, nodes), disagreements) }
    }

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
