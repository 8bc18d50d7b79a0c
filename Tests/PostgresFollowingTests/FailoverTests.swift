import ChangeSources
import Foundation
import PostgresFollowing
import PostgresLink
import RelayModel
import RelayTestKit
import Testing

/// A server is replaced by one that lacks the end of what was followed, or is restored to an
/// earlier state.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct FailoverTests {
    /// Returns a server and a standby that has its first rows.
    private static func pair() throws -> (PostgresServer, PostgresServer) {
        let first = try PostgresServer(["wal_level=logical"])
        try first.sql("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
        return (first, try PostgresServer(["wal_level=logical"], copyOf: first))
    }

    /// Disconnects the standby from its primary.
    private static func part(_ first: PostgresServer, _ second: PostgresServer) async throws {
        try second.sql("ALTER SYSTEM SET primary_conninfo = ''")
        try second.sql("SELECT pg_reload_conf()")
        try await first.wait(
            for: "0",
            of: "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'walreceiver'")
    }

    private static let lost = "INSERT INTO t SELECT n, 'lost' FROM generate_series(2, 2000) n"

    private static func settings(
        _ first: PostgresServer, _ second: PostgresServer, outbox: Bool
    ) throws -> FollowSettings {
        var settings =
            try outbox ? first.outbox("postgres") : first.settings("postgres") { $0.slot = "shop" }
        settings.endsBeforeItBegan = false
        settings.target = try PostgresTarget(
            "host=\(first.folder),\(second.folder) user=postgres dbname=postgres")
        return settings
    }

    /// The log of the promoted server reuses the places of the lost changes.
    @Test(arguments: [false, true])
    func `changes after lost changes have higher versions`(outbox: Bool) async throws {
        let (first, second) = try Self.pair()
        defer { second.end() }
        let followed = Followed()
        let settings = try Self.settings(first, second, outbox: outbox)
        try await followed.run(settings) { _ in
            await followed.until { $0.words.last == "following" }
            // Waits for the standby to have the outbox, which was created meanwhile.
            try await second.wait(
                for: "t", of: "SELECT pg_last_wal_replay_lsn() >= '\(try Self.written(first))'")
            try await Self.part(first, second)
            try first.sql(Self.lost)
            await followed.until { $0.rows.count == 2000 }
            try second.sql("SELECT pg_promote()")
            first.end()
            if !outbox {
                await followed.until { $0.words.last == "slotMissing" }
                try second.sql("SELECT pg_create_logical_replication_slot('shop', 'pgoutput')")
                // Changes before the new slot are not sent, so the follower stops.
                await followed.until { $0.words.last == "slotMoved" }
            }
        }
        try await followed.follow(settings) { followed in
            await followed.until { $0.words.last == "following" && $0.words.count > 4 }
            try second.sql("INSERT INTO t VALUES (2, 'new'); UPDATE t SET v = 'new' WHERE id = 1")
            await followed.until { $0.rows.count == 2002 }
        }
        let rows = followed.seen.rows
        let versions = rows.compactMap(\.version)
        #expect(versions == versions.sorted())
        #expect(versions[2000] > versions[1999])
        #expect(Set(rows.map(\.position)).count == 2002)
    }

    @Test func `a slot that another program advanced is noticed`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        var settings = try server.settings(name)
        settings.endsBeforeItBegan = false
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1)", in: name)
            await followed.until { $0.rows.count == 1 }
            // The follower reconnects after a second. This loop repeats until the test gets hold of
            // the slot first.
            while followed.seen.words.last != "slotMoved" {
                try server.sql(
                    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                        + "WHERE slot_name = '\(name)' AND active", in: name)
                try server.sql("INSERT INTO t SELECT max(id) + 1 FROM t", in: name)
                _ = try? server.sql(
                    "SELECT pg_replication_slot_advance('\(name)', pg_current_wal_lsn())",
                    in: name)
                try await Task.sleep(for: .milliseconds(200))
            }
            #expect(follower.status.sentence.contains("but this follower confirmed only up to "))
        }
        // A new follower is a decision of the operator's to continue.
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
    }

    private static func written(_ server: PostgresServer) throws -> String {
        try server.sql("SELECT pg_current_wal_lsn()")
    }

    @Test func `a server restored to a copy is noticed`()
        async throws
    {
        let first = try PostgresServer(["wal_level=logical"])
        try first.sql(
            """
            CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a');
            CREATE PUBLICATION belfry FOR TABLE t
            """)
        let files = FileManager.default
        let second = try PostgresServer(["wal_level=logical"], copyOf: first) { folder in
            // Without this file the copy starts as a primary and stays on the same timeline.
            try files.removeItem(atPath: folder + "/data/standby.signal")
        }
        defer { second.end() }
        let place = second.folder + "/place"
        try files.createSymbolicLink(atPath: place, withDestinationPath: first.folder)
        var settings = try first.settings("postgres") { $0.slot = "shop" }
        settings.endsBeforeItBegan = false
        settings.target = try PostgresTarget("host=\(place) user=postgres dbname=postgres")
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            try first.sql(Self.lost)
            await followed.until { $0.rows.count == 2000 }
            try files.removeItem(atPath: place)
            try files.createSymbolicLink(atPath: place, withDestinationPath: second.folder)
            first.end()
            await followed.until { $0.words.last == "serverWentBack" }
            #expect(follower.status.sentence.contains("its log ends at "))
        }
    }

    @Test(arguments: [false, true])
    func `an announcement without a valid author is reported`(outbox: Bool) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let followed = Followed()
        let settings = try outbox ? server.outbox(name) : server.settings(name)
        let follower = try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            for (number, said) in ["d-1", #"{"deviceId": "d-1"}"#, #"{"deviceID": "d-1"}"#]
                .enumerated()
            {
                let naming =
                    outbox
                    ? "SET LOCAL belfry.origin = '\(said)'"
                    : "SELECT pg_logical_emit_message(true, 'belfry', '\(said)')"
                try server.sql(
                    "BEGIN; \(naming); INSERT INTO t VALUES (\(number)), (\(number + 10)); COMMIT",
                    in: name)
            }
            await followed.until { $0.rows.count == 6 }
            return follower
        }
        #expect(followed.seen.rows.compactMap(\.deviceID) == ["d-1", "d-1"])
        #expect(follower.status.authorsUnread == 2)
        #expect(follower.status.namedNobody?.contains("(2 so far)") == true)
    }

    @Test func `a new slot survives a failover, and one that does not is reported`()
        async throws
    {
        let server = try PostgresServer.shared()
        guard try Self.knowsFailoverSlots(server) else { return }
        let name = try server.database("CREATE TABLE t (id int PRIMARY KEY)")
        let settings = try server.settings(name)
        let slot = "FROM pg_replication_slots WHERE slot_name = '\(name)'"
        let followed = Followed()
        try await followed.run(settings) { follower in
            await followed.until { $0.words.last == "following" }
            let failover = try server.sql("SELECT failover \(slot)")
            #expect(failover == "t")
            #expect(!follower.status.lacksFailover)
            #expect(!follower.status.sentence.contains("ALTER_REPLICATION_SLOT"))
        }
        try await server.wait(
            for: "1", of: "SELECT count(pg_drop_replication_slot(slot_name)) \(slot) AND NOT active"
        )
        try server.sql("SELECT pg_create_logical_replication_slot('\(name)', 'pgoutput')", in: name)
        let again = Followed()
        try await again.run(settings) { follower in
            await again.until { $0.words.last == "following" }
            #expect(follower.status.sentence.contains("ALTER_REPLICATION_SLOT"))
            #expect(follower.status.word == "following")
        }
    }

    private static func knowsFailoverSlots(_ server: PostgresServer) throws -> Bool {
        (Int(try server.sql("SHOW server_version_num")) ?? 0) >= 170_000
    }

    /// The standby keeps a copy of the slot, set up as docs/postgresql.md describes.
    @Test func `after a failover the standby's copy of the slot is followed on`()
        async throws
    {
        guard try Self.knowsFailoverSlots(try PostgresServer.shared()) else { return }
        let (first, second) = try Self.pair()
        defer { second.end() }
        try first.sql("SELECT pg_create_physical_replication_slot('standby')")
        for (setting, value) in [
            ("primary_slot_name", "standby"), ("sync_replication_slots", "on"),
            ("hot_standby_feedback", "on"),
            ("primary_conninfo", "host=\(first.folder) user=postgres dbname=postgres"),
        ] {
            try second.sql("ALTER SYSTEM SET \(setting) = '\(value)'")
        }
        try second.sql("SELECT pg_reload_conf()")
        let followed = Followed()
        try await followed.run(try Self.settings(first, second, outbox: false)) { _ in
            await followed.until { $0.words.last == "following" }
            var count = 1
            // The copy becomes permanent once the slot has moved past the start of the standby's
            // log.
            while try second.sql(
                "SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary") != "1"
            {
                count += 1
                try first.sql("INSERT INTO t VALUES (\(count), 'before')")
                try Task.checkCancellation()
            }
            let before = count
            await followed.until { $0.rows.count == before }
            try await second.wait(
                for: "t", of: "SELECT pg_last_wal_replay_lsn() >= '\(try Self.written(first))'")
            try second.sql("SELECT pg_promote()")
            first.end()
            await followed.until {
                $0.words.last == "following" && $0.words.contains("unreachable")
            }
            try second.sql("INSERT INTO t VALUES (0, 'after')")
            await followed.until { $0.rows.last?.after?.fields["id"] == .integer(0) }
        }
        let seen = followed.seen
        #expect(!seen.words.contains("slotMissing") && !seen.words.contains("slotMoved"))
        // What the copy of the slot was behind by comes again, with the same positions.
        let ids = Set(seen.rows.compactMap { $0.after?.fields["id"] })
        #expect(ids.count > 1 && Set(seen.rows.map(\.position)).count == ids.count)
    }

    /// PostgreSQL 17 and later wait so for a slot that standbys copy.
    @Test func `a server that waits for a missing standby is reported`() async throws {
        let other = try PostgresServer.shared()
        guard (Int(try other.sql("SHOW server_version_num")) ?? 0) >= 170_000 else { return }
        let server = try PostgresServer(["wal_level=logical", "synchronized_standby_slots=away"])
        defer { server.end() }
        try server.sql("CREATE TABLE t (id int PRIMARY KEY)")
        let settings = try server.settings("postgres")
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        // Only a replication connection can execute this, and it waits until no follower uses the
        // slot.
        try server.sql(
            "ALTER_REPLICATION_SLOT postgres (FAILOVER)", in: "dbname=postgres replication=database"
        )
        let followed = Followed()
        let follower = try followed.follower(settings, clock: HurriedClock())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await follower.run() }
            await followed.until { $0.words.last == "following" }
            try server.sql("INSERT INTO t VALUES (1)")
            _ = await Turns.yield { follower.status.warning != nil }
            #expect(follower.status.word == "lagging")
            #expect(follower.status.sentence.contains("synchronized_standby_slots"))
            #expect(followed.seen.rows.isEmpty)
            group.cancelAll()
        }
    }
}
