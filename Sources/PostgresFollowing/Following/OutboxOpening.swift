import PostgresLink
import RelayModel

/// Opens a database with an outbox: a table that triggers fill, for servers that do not let the
/// role replicate.
///
/// It is used by the follower's thread alone, and that protects it.
final class OutboxOpening: RowOrigin, @unchecked Sendable {
    private let settings: FollowSettings
    private let memory: FollowMemory
    private let watch: @Sendable () -> Duration
    private let catalogue: Catalogue
    private let types: TypeCatalogue
    /// What versions have more than numbers.
    private let base: Int64
    private let state: OutboxState
    /// What was committed when the rows were read, in PostgreSQL's words.
    private var snapshot: String?

    private var connection: PostgresConnection { catalogue.connection }

    /// What the outbox says of itself.
    struct OutboxState: Sendable, Hashable {
        /// Names this outbox among all that there ever are.
        let identity: String
        /// A number before those of all changes.
        let firstNumber: Int64
        /// Whether the relay has the rows as they were.
        let hasBegun: Bool
    }

    /// Connects, makes what is missing if that is asked for, and takes the outbox for itself.
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
            // What is deleted once more after a crash was posted, and is known.
            try connection.query("SET synchronous_commit = off; SET lock_timeout = '5s'")
            if settings.makes, !memory.current.hasFollowed {
                try Self.make(settings, catalogue)
            }
            try Self.take(catalogue)
            return (try catalogue.types(), try catalogue.timeline().baseOfRows)
        }
        state = try ServerAccess.told { try Self.state(connection) }
    }

    /// Makes what is missing: a trigger holds up who writes to its table while it is made.
    private static func make(_ settings: FollowSettings, _ catalogue: Catalogue) throws {
        var tables = settings.tables
        let goesOn = try hasBegun(catalogue.connection)
        if goesOn {
            // What was dropped since keeps no other from being told: the stream says it.
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
            // A partition has the trigger of what it is a part of, and may have none of its own.
            guard try !catalogue.tablesWithoutTrigger([table]).isEmpty else { continue }
            do {
                for statement in OutboxSQL(tables: [table]).triggers {
                    try Catalogue.naming { try catalogue.connection.query(statement) }
                }
            } catch FollowProblem.tableMissing(_) where goesOn {
                // So it is with what is no table.
            }
        }
    }

    private static func hasOutbox(_ connection: PostgresConnection) throws -> Bool {
        try connection.query("SELECT to_regclass('belfry.outbox_state') IS NOT NULL")
            .first?.first == "t"
    }

    /// Whether there is one that is read already.
    private static func hasBegun(_ connection: PostgresConnection) throws -> Bool {
        guard try hasOutbox(connection) else { return false }
        return try connection.query("SELECT has_begun FROM belfry.outbox_state").first?.first
            == "t"
    }

    /// Whether an earlier version made it, and its function can be replaced: what was mended in it
    /// would reach no outbox that is there.
    private static func isEarlier(_ connection: PostgresConnection) throws -> Bool {
        try connection.query(OutboxSQL.functionDiffers, [OutboxSQL.functionBody]).first?.first
            == "t"
    }

    /// One follower reads an outbox: two would post what the other deletes.
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
        throw FollowProblem.outboxTaken(holder ?? "it has just let go")
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
        // What was taken was deleted.
        if settings.restored != nil, state.hasBegun, !memory.current.hasFollowed {
            throw FollowProblem.storeRestored("the outbox does not keep what was taken of it")
        }
        return state.hasBegun
    }

    /// What was committed before the rows were read is in them, and is not told as changes.
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

    /// A number with which all up to it have ended: a snapshot that is taken now has all of them,
    /// and none beyond it needs to be in it.
    ///
    /// It is the version of the snapshot's rows. A snapshot that is begun anew has a higher one if
    /// anything was changed since, and so tells which kept records it did not contain. Without the
    /// wait, a change with a lower number could be committed afterwards, and would be taken for
    /// older than the snapshot.
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

    /// The wait between two looks at transactions that have not ended, and how long they may last
    /// before that is said.
    private static let (pause, patience) = (Duration.milliseconds(50), Duration.seconds(3))

    private static func heldUp(by writer: String) -> String {
        "The rows as they are are read when the transactions that have changed followed tables "
            + "have ended: one is still open (\(writer)); end it."
    }

    /// Its one connection is in the middle of the rows; an outbox is looked at behind them.
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
            // Otherwise a crash of the server could forget it, after which changes were posted.
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

/// Removes an outbox, with what was not posted of it.
package enum OutboxRemoval {
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
