import PostgresLink
import RelayModel
import Storage

/// Who owns the shard of a store: one process at a time, as long as it renews its lease.
///
/// The server's clock is the only one that is compared. What an owner writes is written under the
/// shard's lock, in a transaction that looks whether it is the owner still: so a process that was
/// paused, or cut off, and wakes as no owner any more, can write nothing. A new owner ends the
/// sessions of the one before it, because a transaction that hangs in them would hold the lock.
struct Ownership: Sendable {
    /// How long nobody else takes the shard after the last renewal.
    static let lease = Duration.seconds(5)
    /// How long a server that has just started keeps the shard for its owner, whose lease may have
    /// run out meanwhile: who renews comes once a second.
    static let welcome = Duration.milliseconds(2500)
    /// How often the lease is renewed.
    static let renewal = Duration.seconds(1)

    /// What came of asking for the shard.
    enum Claim: Sendable, Hashable {
        /// It is owned now, under this number.
        case owned(epoch: Int64)
        /// Another process owns it, which is called so.
        case owner(String)
    }

    /// Asks for the shard.
    ///
    /// - Parameters:
    ///   - claimant: Who asks.
    ///   - connection: A connection without a transaction.
    /// - Returns: The number under which it is owned now, or who owns it.
    /// - Throws: ``PostgresError``; ``StorageError/damaged(path:reason:)`` without an owner's row.
    static func claim(_ claimant: StoreClaimant, _ connection: PostgresConnection) throws -> Claim {
        try connection.query("BEGIN")
        do {
            let claim = try claimUnderLock(claimant, connection)
            switch claim {
            case .owned: try connection.query("COMMIT")
            // To commit a lock would wait for a standby that is away, and keep the row from its
            // owner, who renews it, for as long.
            case .owner: try connection.query("ROLLBACK")
            }
            return claim
        } catch {
            _ = try? connection.query("ROLLBACK")
            throw error
        }
    }

    private static func claimUnderLock(
        _ claimant: StoreClaimant, _ connection: PostgresConnection
    ) throws -> Claim {
        // One that somebody deleted is made anew: whoever owned the shard by it writes no more.
        try connection.query(
            """
            INSERT INTO ownership (shard, epoch, leaseUntil)
            SELECT shard, epoch, '-infinity' FROM progress WHERE shard = 0
            ON CONFLICT DO NOTHING
            """)
        // Not the shard's row, which the owner before may hold in a transaction that hangs.
        let found = try connection.query(
            "SELECT owner, \(isHeld), name FROM ownership WHERE shard = 0 FOR UPDATE")
        guard let row = found.first else {
            throw StorageError.damaged(path: "ownership", reason: "the shard has no owner's row")
        }
        if let before = row[0] {
            if row[1] == "t" { return .owner(row[2] ?? "") }
            try endSessions(of: before, connection)
        }
        try connection.query("SELECT shard FROM shard WHERE shard = 0 FOR NO KEY UPDATE")
        let taken = try connection.query(
            """
            UPDATE ownership SET epoch = epoch + 1, owner = $1, name = $2, address = $3, pass = $4,
                leaseUntil = clock_timestamp() + make_interval(secs => \(lease.components.seconds))
            WHERE shard = 0 RETURNING epoch
            """,
            [
                claimant.sessionName, claimant.name, claimant.endpoint?.address,
                claimant.endpoint?.pass,
            ])
        guard let epoch = taken.first?[0].flatMap({ Int64($0) }) else {
            throw StorageError.damaged(path: "ownership", reason: "the shard has no owner's row")
        }
        try connection.query(
            "UPDATE progress SET epoch = $1::bigint WHERE shard = 0", ["\(epoch)"])
        try connection.query("DELETE FROM commitMark WHERE epoch < $1::bigint", ["\(epoch)"])
        return .owned(epoch: epoch)
    }

    /// Ends the sessions of an owner, as far as the role may, within a transaction.
    ///
    /// As who it came in as: where a role works as another (`ALTER ROLE … SET role = …`), that one
    /// may not end, nor see, what came in as the former.
    private static func endSessions(of owner: String, _ connection: PostgresConnection) throws {
        try connection.query(
            """
            SET LOCAL role = none;
            SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
            WHERE application_name = \(owner.quotedText) AND pid <> pg_backend_pid()
                AND pg_has_role(usesysid, 'USAGE');
            RESET role
            """)
    }

    /// Whether nobody else may have the shard yet, in SQL.
    ///
    /// A server that started later than now did so before its clock was set back.
    static let isHeld = """
        clock_timestamp() < greatest(leaseUntil, CASE
            WHEN pg_postmaster_start_time() <= clock_timestamp() THEN pg_postmaster_start_time()
                + make_interval(secs => \(welcome / .seconds(1))) END)
        """
    /// Whether a lease is longer than any that was ever written, in SQL: the server's clock was set
    /// back since.
    private static let isTooLong = """
        leaseUntil > clock_timestamp() + make_interval(secs => \(lease.components.seconds * 2))
        """

    /// Who owns the shard; `nil` if it may be asked for.
    static func owner(_ connection: PostgresConnection) throws -> StoreOwner? {
        let rows = try connection.query(
            """
            SELECT name, epoch, address, pass, \(isTooLong) FROM ownership
            WHERE shard = 0 AND owner IS NOT NULL AND \(isHeld)
            """, within: renewal * 2)
        guard let row = rows.first else { return nil }
        if row[4] == "t" { try shorten(connection) }
        let endpoint = row[2].flatMap { address in
            row[3].map { StoreEndpoint(address: address, pass: $0) }
        }
        return StoreOwner(
            name: row[0] ?? "", epoch: row[1].flatMap { Int64($0) } ?? 0, endpoint: endpoint)
    }

    /// Makes a lease that is too long as long as one that begins now: an owner that is there renews
    /// it, and one that is not would keep the shard for as long as the clock was set back.
    private static func shorten(_ connection: PostgresConnection) throws {
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            UPDATE ownership
            SET leaseUntil = clock_timestamp() + make_interval(secs => \(lease.components.seconds))
            FROM quick WHERE shard = 0 AND \(isTooLong)
            """, within: renewal * 2)
    }

    /// Renews the lease; says whether the shard is owned still, under this number and by the
    /// process with sessions of this name.
    ///
    /// The number alone does not tell: after a failover to a server that lacks the end of the log
    /// it is given to somebody else.
    static func renew(
        epoch: Int64, by owner: String, _ connection: PostgresConnection
    ) throws -> Bool {
        // A lease that is lost in a crash of the server costs the next owner a wait, and no more;
        // it must not wait for a standby that is away.
        let rows = try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            UPDATE ownership
            SET leaseUntil = clock_timestamp() + make_interval(secs => \(lease.components.seconds))
            FROM quick WHERE shard = 0 AND epoch = $1::bigint AND owner = $2 RETURNING epoch
            """, ["\(epoch)", owner], within: renewal * 2)
        return !rows.isEmpty
    }

    /// Gives the shard back, so that the next may have it at once.
    static func release(
        epoch: Int64, by owner: String, _ connection: PostgresConnection
    ) throws {
        // Lost in a crash of the server it costs the next owner a wait, as a lease that is not
        // renewed does; an end does not wait for a standby that is away.
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            UPDATE ownership SET owner = NULL, name = NULL, address = NULL, pass = NULL,
                leaseUntil = '-infinity'
            FROM quick WHERE shard = 0 AND epoch = $1::bigint AND owner = $2
            """, ["\(epoch)", owner], within: renewal * 2)
    }
}
