import PostgresLink
import RelayModel

/// Opens a database with an outbox: a table that triggers fill, for servers that do not let the
/// role replicate.
///
/// Concurrency: only the follower's thread uses it.
final class OutboxOpening: RowOrigin, @unchecked Sendable {
    private let settings: FollowSettings
    private let memory: FollowMemory
    private let watch: @Sendable () -> Duration
    private let catalogue: Catalogue
    private let types: TypeCatalogue
    /// The base that is added to the numbers of rows to get versions.
    private let base: Int64
    private let state: OutboxState
    /// The transactions that were committed when the rows were read, in PostgreSQL's notation.
    private var snapshot: String?

    private var connection: PostgresConnection { catalogue.connection }

    /// The state of the outbox, from its table.
    struct OutboxState: Sendable, Hashable {
        /// The identity of this outbox, which is never used again.
        let identity: String
        /// A number below those of all changes.
        let firstNumber: Int64
        /// Whether the relay has the existing rows.
        let hasBegun: Bool
    }

    /// Connects, creates what is missing if asked to, and locks the outbox for itself.
    ///
    /// - Throws: ``FollowProblem``.
    init(
        _ settings: FollowSettings, memory: FollowMemory, watch: @escaping @Sendable () -> Duration
    ) throws {
        self.settings = settings
        self.memory = memory
        self.watch = watch
        let connection = try ServerAccess.connect(settings, memory, watch, isReplication: false)
        let catalogue = Catalogue(connection)
        self.catalogue = catalogue
        (types, base) = try ServerAccess.told {
            // After a crash, rows may have to be deleted again, which were posted and are
            // recognised.
            try connection.query("SET synchronous_commit = off; SET lock_timeout = '5s'")
            if settings.makes, !memory.current.hasFollowed {
                try Self.make(settings, catalogue)
            }
            try Self.take(catalogue)
            return (try catalogue.types(), try catalogue.timeline().baseOfRows)
        }
        state = try ServerAccess.told { try Self.state(connection) }
    }

    /// Creates what is missing; creating a trigger blocks writers of its table.
    private static func make(_ settings: FollowSettings, _ catalogue: Catalogue) throws {
        var tables = settings.tables
        let goesOn = try hasBegun(catalogue.connection)
        if goesOn {
            // A table that was dropped since does not prevent following the others; the stream
            // warns of it.
            let absent = Set(try catalogue.tablesAbsent(among: tables))
            tables.removeAll { absent.contains($0) }
        } else {
            try catalogue.requireTables(tables)
        }
        if try !hasOutbox(catalogue.connection) {
            for statement in OutboxSQL(tables: []).makes {
                try catalogue.connection.query(statement)
            }
        } else if try isEarlier(catalogue.connection) {
            try catalogue.connection.query(OutboxSQL.function)
        }
        for table in tables {
            // A partition has the trigger of its partitioned table, and cannot have another one.
            guard try !catalogue.tablesWithoutTrigger([table]).isEmpty else { continue }
            do {
                for statement in OutboxSQL(tables: [table]).triggers {
                    try Catalogue.naming { try catalogue.connection.query(statement) }
                }
            } catch FollowProblem.tableMissing(_) where goesOn {
                // The same holds for a name that is not a table.
            }
        }
    }

    private static func hasOutbox(_ connection: PostgresConnection) throws -> Bool {
        try connection.query("SELECT to_regclass('belfry.outbox_state') IS NOT NULL")
            .first?.first == "t"
    }

    /// Returns whether there is an outbox that has begun to be read.
    private static func hasBegun(_ connection: PostgresConnection) throws -> Bool {
        guard try hasOutbox(connection) else { return false }
        return try connection.query("SELECT has_begun FROM belfry.outbox_state").first?.first
            == "t"
    }

    /// Returns whether an earlier version created the outbox's function, and this role can replace
    /// it.
    ///
    /// Without a replacement, corrections would not reach existing outboxes.
    private static func isEarlier(_ connection: PostgresConnection) throws -> Bool {
        try connection.query(OutboxSQL.functionDiffers, [OutboxSQL.functionBody]).first?.first
            == "t"
    }

    /// Takes the lock of the only follower: two would post rows that the other deletes.
    private static func take(_ catalogue: Catalogue) throws {
        let taken = try catalogue.connection.query(
            "SELECT pg_try_advisory_lock(\(OutboxSQL.lockClass), \(OutboxSQL.followerLock))")
        guard taken.first?.first != "t" else { return }
        let holders = try catalogue.connection.query(
            """
            SELECT pid FROM pg_locks WHERE locktype = 'advisory'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid = \(OutboxSQL.lockClass) AND objid = \(OutboxSQL.followerLock)
            AND objsubid = 2 AND granted LIMIT 1
            """)
        let holder = try holders.first?.text(0).map { try catalogue.holder($0) }
        throw FollowProblem.outboxTaken(holder ?? "it has just been released")
    }

    private static func state(_ connection: PostgresConnection) throws -> OutboxState {
        guard try hasOutbox(connection) else { throw FollowProblem.outboxMissing }
        let rows = try connection.query(
            "SELECT identity, first_number, has_begun FROM belfry.outbox_state")
        guard let row = rows.first, let identity = row.text(0) else {
            throw FollowProblem.outboxMissing
        }
        return OutboxState(
            identity: identity, firstNumber: row.text(1).flatMap { Int64($0) } ?? 0,
            hasBegun: row.text(2) == "t")
    }

    func goesOn() throws -> Bool {
        // Rows that were taken are deleted from the outbox.
        if settings.restored != nil, state.hasBegun, !memory.current.hasFollowed {
            throw FollowProblem.storeRestored("the outbox does not keep what was taken from it")
        }
        return state.hasBegun
    }

    /// Begins a snapshot; what it contains is not sent again as changes.
    func begin() throws -> SnapshotReader? {
        return try ServerAccess.told {
            let tables = try catalogue.tablesWithOutbox()
            guard !tables.isEmpty else { throw FollowProblem.outboxEmpty }
            guard settings.takesSnapshot else { return nil }
            let last = try settledNumber()
            try connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            let row = try connection.query("SELECT pg_current_snapshot(), gen_random_uuid()").first
            guard let seen = row?.text(0), let attempt = row?.text(1) else {
                throw FollowProblem.serverRefused("it has no snapshot")
            }
            snapshot = seen
            return SnapshotReader(
                connection, origin: "\(state.identity)/\(attempt)/snapshot",
                version: last &+ base, tables: tables, types: types
            ) { [catalogue] id in
                let tables = try catalogue.tablesWithOutbox()
                guard let table = tables.first(where: { $0.relation.id == id }) else { return nil }
                return (table: table, types: try catalogue.types())
            }
        }
    }

    /// Returns a number up to which all transactions have ended.
    ///
    /// A snapshot that is taken now contains all of them, and need not contain any higher number.
    /// The number is the version of the snapshot's rows. If anything changes, a repeated snapshot
    /// gets a higher version, which shows which kept records it did not contain. Without the wait,
    /// a change with a lower number could be committed after the snapshot, and would count as older
    /// than it.
    private func settledNumber() throws -> Int64 {
        guard let last = try catalogue.lastOutboxNumber() else { return state.firstNumber - 1 }
        var writers = try catalogue.outboxWriters()
        let began = watch()
        defer { memory.change { $0.status.warning = nil } }
        while !writers.isEmpty {
            guard !memory.isStopped else { throw CancellationError() }
            if watch() - began > Self.patience {
                let writer = try catalogue.outboxWriter(among: writers)
                memory.change { $0.status.warning = Self.heldUp(by: writer) }
            }
            connection.wait(toRead: false, for: Self.pause)
            writers.formIntersection(try catalogue.outboxWriters())
        }
        return max(last, state.firstNumber - 1)
    }

    /// The interval of checks for open transactions, and how long these may last before a warning.
    private static let (pause, patience) = (Duration.milliseconds(50), Duration.seconds(3))

    private static func heldUp(by writer: String) -> String {
        "The snapshot of the rows begins when the transactions that have changed followed tables "
            + "have ended: one is still open (\(writer)); end it."
    }

    /// Does nothing: the only connection is reading the rows, and the outbox is checked afterwards.
    func look() {}

    func keep() throws {
        try ServerAccess.told {
            try connection.query("BEGIN")
            if let snapshot {
                try connection.query(
                    "DELETE FROM belfry.outbox WHERE pg_visible_in_snapshot(transaction, $1)",
                    [snapshot], within: nil)
            }
            try connection.query("UPDATE belfry.outbox_state SET has_begun = true")
            // Otherwise a crash of the server could lose this although later changes were posted.
            try connection.query("SET LOCAL synchronous_commit = on")
            try connection.query("COMMIT")
        }
    }

    func stream() throws -> any RowStream {
        return try ServerAccess.told {
            try connection.query("LISTEN \(OutboxSQL.channel)")
            return OutboxStream(
                catalogue, types: types, identity: state.identity, base: base, memory: memory,
                settings: settings, watch: watch)
        }
    }
}

/// Removes an outbox, including rows that were not posted.
package enum OutboxRemoval {
    /// Connects and removes the outbox.
    ///
    /// - Throws: ``FollowProblem``.
    package static func run(
        _ settings: FollowSettings, watch: @escaping @Sendable () -> Duration
    ) throws {
        guard let wake = PostgresWake() else {
            throw FollowProblem.unreachable("the process has no file descriptor left")
        }
        let memory = FollowMemory(FollowStatus(since: Timestamp(seconds: 0)), wake: wake)
        let connection = try ServerAccess.connect(settings, memory, watch, isReplication: false)
        try ServerAccess.told {
            try connection.query("SET lock_timeout = '5s'")
            for statement in OutboxSQL.drops { try connection.query(statement) }
        }
    }
}
