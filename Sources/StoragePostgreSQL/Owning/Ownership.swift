import PostgresLink
import RelayModel
import Storage

/// The ownership of a store's shard: one process has it at a time, as long as it renews its lease.
///
/// Only the server's clock is compared. An owner writes under the shard's lock, in a transaction
/// that checks that it is still the owner. So a process that was paused or cut off, and is no
/// longer the owner when it continues, can write nothing. A new owner ends the sessions of the
/// previous one, because a transaction that hangs in one of them would hold the lock.
struct Ownership: Sendable {
    /// How long the lease lasts after a renewal.
    static let lease = Duration.seconds(5)
    /// How long a server that has just started keeps the shard for its owner.
    ///
    /// The lease may have expired meanwhile, and an owner that is still running renews it within a
    /// second.
    static let welcome = Duration.milliseconds(2500)
    /// The time between two renewals.
    static let renewal = Duration.seconds(1)

    /// The result of a claim.
    enum Claim: Sendable, Hashable {
        /// The caller owns the shard now, under this epoch.
        case owned(epoch: Int64)
        /// Another process owns it; its name.
        case owner(String)
    }

    /// Claims the shard.
    ///
    /// - Parameters:
    ///   - claimant: The process that claims it.
    ///   - connection: A connection without a transaction.
    /// - Returns: The epoch under which it is owned now, or the name of its owner.
    /// - Throws: ``PostgresError``; ``StorageError/damaged(path:reason:)`` if the ownership row is
    ///   missing.
    static func claim(_ claimant: StoreClaimant, _ connection: PostgresConnection) throws -> Claim {
        try connection.query("BEGIN")
        do {
            let claim = try claimUnderLock(claimant, connection)
            switch claim {
            case .owned: try connection.query("COMMIT")
            // A commit would wait for a synchronous standby that is down, and block the row for as
            // long. The owner could not renew its lease meanwhile.
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
        // If the row was deleted, a new one is inserted. An owner under the deleted row can no
        // longer write.
        try connection.query(
            """
            INSERT INTO ownership (shard, epoch, leaseUntil)
            SELECT shard, epoch, '-infinity' FROM progress WHERE shard = 0
            ON CONFLICT DO NOTHING
            """)
        // Locks this row first, because the previous owner may hold the shard's row in a
        // transaction that hangs.
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

    /// Ends the sessions of a previous owner, as far as the role may, within a transaction.
    ///
    /// This runs as the role that logged in. If that role is set to work as another (`ALTER ROLE …
    /// SET role = …`), the other one can neither see nor end the sessions of the first.
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

    /// A SQL condition: whether the shard must still be left to its owner.
    ///
    /// A start of the server that is later than now happened before its clock was set back, and is
    /// ignored.
    static let isHeld = """
        clock_timestamp() < greatest(leaseUntil, CASE
            WHEN pg_postmaster_start_time() <= clock_timestamp() THEN pg_postmaster_start_time()
                + make_interval(secs => \(welcome / .seconds(1))) END)
        """
    /// A SQL condition: whether a lease is longer than any that is ever written, because the
    /// server's clock was set back since.
    private static let isTooLong = """
        leaseUntil > clock_timestamp() + make_interval(secs => \(lease.components.seconds * 2))
        """

    /// Returns the owner of the shard; `nil` if it may be claimed.
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

    /// Shortens a lease that is too long to the length of one that begins now.
    ///
    /// A running owner will renew it. Without the change, an owner that is gone would keep the
    /// shard for as long as the clock was set back.
    private static func shorten(_ connection: PostgresConnection) throws {
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            UPDATE ownership
            SET leaseUntil = clock_timestamp() + make_interval(secs => \(lease.components.seconds))
            FROM quick WHERE shard = 0 AND \(isTooLong)
            """, within: renewal * 2)
    }

    /// Renews the lease; returns whether the process with the session name `owner` still owns the
    /// shard under this epoch.
    ///
    /// The epoch alone is not enough: after a failover to a server that lacks the end of the log,
    /// the same epoch is given to another process.
    static func renew(
        epoch: Int64, by owner: String, _ connection: PostgresConnection
    ) throws -> Bool {
        // A renewal that is lost in a crash of the server only makes the next owner wait. It must
        // not wait for a synchronous standby that is down.
        let rows = try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            UPDATE ownership
            SET leaseUntil = clock_timestamp() + make_interval(secs => \(lease.components.seconds))
            FROM quick WHERE shard = 0 AND epoch = $1::bigint AND owner = $2 RETURNING epoch
            """, ["\(epoch)", owner], within: renewal * 2)
        return !rows.isEmpty
    }

    /// Releases the shard, so that another process can claim it at once.
    static func release(
        epoch: Int64, by owner: String, _ connection: PostgresConnection
    ) throws {
        // If a crash of the server loses this, the next owner waits until the lease expires. The
        // end of a process must not wait for a synchronous standby that is down.
        try connection.query(
            """
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            UPDATE ownership SET owner = NULL, name = NULL, address = NULL, pass = NULL,
                leaseUntil = '-infinity'
            FROM quick WHERE shard = 0 AND epoch = $1::bigint AND owner = $2
            """, ["\(epoch)", owner], within: renewal * 2)
    }
}
