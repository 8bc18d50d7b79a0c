import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// The cost of finding the few rows to prune on a real server.
///
/// Every other write waits meanwhile.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct PruningCostTests {
    /// A pruning statement and the values of its parameters.
    private struct Pruning {
        let sql: String
        let values: [Int64]
    }

    /// Inserts rows of many containers, some of which are to be pruned.
    private static func fill(_ test: TestPlace) throws {
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            SET session_replication_role = replica;
            INSERT INTO digest (container, owner, subscription, device, reason, openedAt, dueAt,
                decidedAt, closedAt, deliveries, count, deliveryID, position, "offset",
                subscriptionSerial, deviceSerial, body)
            SELECT 1 + n % 20, 'user', 'public/' || n, 'phone', '', n, n, n, n, 1, 1,
                decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 0, 1, 1, ''
            FROM generate_series(1, 20000) AS n;
            INSERT INTO deadLetter (deliveryID, container, position, "offset", subscriptionSerial,
                deviceSerial, attempts, status, reason, endedAt, body)
            SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), 1 + n % 20, n, 0, 1, 1, 1, 400,
                'reason' || n % 10, n, repeat('x', 300)
            FROM generate_series(1, 20000) AS n;
            INSERT INTO pastSubscription (serial, container, owner, database, subscriptionID, body,
                activation, ended)
            SELECT n, 1 + n % 20, n, 'public', 's' || n, '{}', n, n + 1
            FROM generate_series(1, 20000) AS n;
            INSERT INTO dedupe (container, source, kind, key, digest, position, rememberedUntil)
            SELECT 1 + n % 20, 'shop', 2, decode(lpad(to_hex(n), 32, '0'), 'hex'), '', n, n
            FROM generate_series(1, 20000) AS n;
            INSERT INTO courier (token, createdAt, polledAt)
            SELECT lpad(to_hex(n), 64, '0'), n, n FROM generate_series(1, 20000) AS n;
            INSERT INTO userSession (container, id, owner, startedAt, endsAt, tokenEndsAt)
            SELECT 1 + n % 20, decode(lpad(to_hex(n), 32, '0'), 'hex'), n, n, n,
                CASE WHEN n > 20 THEN 99999999 END
            FROM generate_series(1, 20000) AS n;
            """)
        let tables = [
            "digest", "deadLetter", "pastSubscription", "dedupe", "courier", "userSession",
        ]
        for table in tables {
            try test.server.sql("VACUUM ANALYZE \(test.schema).\(table)")
        }
    }

    @Test func `rows to prune are found without reading all rows`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try Self.fill(test)
        let prunings = [
            Pruning(
                sql: RelayStore.deletingFirst(of: "digest", by: "id", from: "closedAt"),
                values: [9, 9]),
            Pruning(sql: RelayStore.droppedLetters, values: [1, 9, 9]),
            Pruning(
                sql: "DELETE FROM dedupe WHERE (container, source, kind, key) IN (SELECT "
                    + "container, source, kind, key FROM dedupe \(RelayStore.oldestKeys))",
                values: [0, 9, 1, 9]),
            Pruning(
                sql: "DELETE FROM pastSubscription WHERE (serial) IN (SELECT serial "
                    + "FROM pastSubscription \(AgingRows.past(.subscription).selection))",
                values: [0, 9, 9]),
            Pruning(sql: RelayStore.orphanStatement, values: [9, 9]),
            Pruning(
                sql: "DELETE FROM userSession WHERE (container, id) IN (SELECT container, id "
                    + "FROM userSession \(AgingRows.sessions.selection))",
                values: [0, 9, 9]),
        ]
        for (number, pruning) in prunings.enumerated() {
            // This asks the writer's own connection for the plan, as it prepares the statements:
            // without knowing the values.
            let plan = try await store.write { commit -> [String] in
                let types = pruning.values.map { _ in "bigint" }.joined(separator: ", ")
                let values = pruning.values.map { "\($0)" }.joined(separator: ", ")
                try commit.db.execute(
                    sql: "PREPARE pruning\(number) (\(types)) AS \(pruning.sql)")
                return try String.fetchAll(
                    commit.db, sql: "EXPLAIN EXECUTE pruning\(number) (\(values))")
            }
            let joins = ["Hash Join", "Hash Semi Join", "Merge Join", "Merge Semi", "Merge Anti"]
            let bad = plan.filter { line in
                joins.contains { line.contains($0) }
                    || line.contains("Sort Key") && line.contains("endedat")
            }
            #expect(bad == [], "\(plan.joined(separator: "\n"))")
            #expect(plan.contains { $0.contains("Nested Loop") })
        }
        await store.close()
    }

    /// After an update from an earlier schema, no version of a record that is not kept has a date.
    @Test func `versions to prune are found by their index, whatever the statistics say`()
        async throws
    {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            SET session_replication_role = replica;
            INSERT INTO shadowRecord (container, database, owner, zoneOwner, zoneName, recordType,
                recordName, source, version, position, fields, isKept, modifiedAt)
            SELECT 1, 'public', '', '', '_defaultZone', 'Artwork', 'r' || n, 'shop', 1, n,
                repeat('x', 300), n % 2, CASE WHEN n % 2 = 1 THEN n * 7919 % 20011 END
            FROM generate_series(1, 20000) AS n;
            ANALYZE shadowRecord;
            UPDATE shadowRecord SET modifiedAt = 99 WHERE modifiedAt IS NULL
            """)
        let statements = [(RelayStore.undatedVersions, [9]), (RelayStore.oldVersions, [9, 9])]
        for (number, (sql, values)) in statements.enumerated() {
            let types = values.map { _ in "bigint" }.joined(separator: ", ")
            let texts = values.map { "\($0)" }.joined(separator: ", ")
            let plan = try await store.write { commit -> [String] in
                try commit.db.execute(sql: "PREPARE versions\(number) (\(types)) AS \(sql)")
                return try String.fetchAll(
                    commit.db, sql: "EXPLAIN EXECUTE versions\(number) (\(texts))")
            }
            #expect(
                plan.contains { $0.contains("shadowrecordversion") },
                "\(plan.joined(separator: "\n"))")
        }
        await store.close()
    }

    /// Inserts six thousand rows into each table that is pruned in the order in which its rows
    /// came.
    private static func fillInOrder(_ test: TestPlace) throws {
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO logEntry (position, container, appendedAt, kind, source, body)
            SELECT n, 1, n, 1, 'test', '{}' FROM generate_series(1, 6000) AS n;
            INSERT INTO dedupe (container, source, kind, key, digest, position, rememberedUntil)
            SELECT 1, 'test', 1, decode(lpad(to_hex(n), 8, '0'), 'hex'), '', n, n
            FROM generate_series(1, 6000) AS n;
            INSERT INTO usedSignature (container, nonce, rememberedUntil)
            SELECT 1, decode(lpad(to_hex(n), 64, '0'), 'hex'), n FROM generate_series(1, 6000) AS n;
            INSERT INTO courier (token, createdAt, polledAt) VALUES ('t', 1, 1);
            INSERT INTO "user" (container, name) VALUES (1, 'ann');
            INSERT INTO courierNotification (courier, container, owner, deliveryID, position,
                queuedAt, expiresAt, takenAt)
            SELECT courier.id, 1, "user".id, decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 1, n, 1
            FROM courier, "user", generate_series(1, 6000) AS n;
            UPDATE progress SET position = 6000
            """)
    }

    /// A dump of a large database holds a snapshot for hours.
    ///
    /// The rows that are deleted meanwhile stay in the tables and indexes until it ends.
    @Test func `rows deleted behind a held snapshot are not walked over`() async throws {
        let test = try TestPlace()
        // What a store knows of the log is what was there when it was opened.
        let first = try await test.storeWithContainer()
        await first.close()
        try Self.fillInOrder(test)
        let other = try test.session().connect()
        try other.query("SET idle_in_transaction_session_timeout = 0")
        try other.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try other.query("SELECT count(*) FROM store")
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            DELETE FROM logEntry WHERE position <= 5000;
            DELETE FROM dedupe WHERE rememberedUntil <= 5000;
            DELETE FROM usedSignature WHERE rememberedUntil <= 5000;
            DELETE FROM courierNotification WHERE position <= 5000
            """)
        let keys = "(container, source, kind, key)"
        let prunings: [(sql: String, index: String, values: StatementArguments)] = [
            (RelayStore.prunedEntries, "logentry_pkey", [5001, 6000, 6000, 100]),
            (
                "DELETE FROM dedupe WHERE \(keys) IN (SELECT container, source, kind, key "
                    + "FROM dedupe \(AgingRows.dedupeKeys.selection))",
                "dedupeRememberedUntil", [5001, 6000, 100]
            ),
            (RelayStore.takenStatement, "courierTaken", [6000, 5001, 100]),
        ]
        for (sql, index, values) in prunings {
            let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
            let db = Database(connection)
            try connection.begin()
            let count = try db.cachedStatement(sql: sql).executeCounting(arguments: values)
            #expect(count == 100)
            let walked = try Int64.fetchOne(
                db,
                sql: """
                    SELECT pg_stat_get_xact_tuples_returned('\(test.schema).\(index)'::regclass)
                    """)
            // Finding the thousand remaining rows may take any path, except one over the five
            // thousand deleted rows.
            #expect((walked ?? .max) < 3000)
            connection.rollBack()
        }
        // All rows are pruned, however many portions that takes.
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        var retention = Retention()
        retention.logAge = .seconds(1)
        let counts = try await store.prune(retention, at: Sample.moment(1000), portion: 300)
        #expect(counts.logEntries == 1000)
        #expect(counts.dedupeKeys == 1000)
        // Checking a signed request does not have to wait for the deletion of older signatures.
        let isFirst = try await store.useSignature(
            [UInt8](repeating: 7, count: 32), of: Sample.container, until: Sample.moment(2000),
            at: Sample.moment(1000))
        let count = try test.server.sql("SELECT count(*) FROM \(test.schema).usedSignature")
        #expect(isFirst && count == "1")
        try other.query("ROLLBACK")
        await store.close()
    }

    @Test func `records are scanned in parts, each once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO shadowRecord (container, database, owner, zoneOwner, zoneName, recordType,
                recordName, source, version, position)
            SELECT container.id, 'public', '', '', '_defaultZone', 'Artwork', 'r' || n, 'postgres',
                n, n
            FROM container, generate_series(1, 4000) AS n;
            """)
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let parts = try TablePart.all(of: "shadowRecord", blocks: 10, in: db)
        #expect(parts.count > 2)
        func looked() throws -> Int64 {
            try test.rowsRead(of: "shadowrecord", in: db)
        }
        var all: Int64 = 0
        for part in parts {
            let before = try looked()
            let count = try Int64.fetchOne(
                db, sql: "SELECT count(*) FROM shadowRecord WHERE position > 0 \(part.condition)",
                arguments: part.arguments)
            all += count ?? 0
            let rows = try looked() - before
            #expect(rows < 2000)
        }
        #expect(all == 4000)
        #expect(try TablePart.all(of: "shadowRecord", in: db).count == 1)
        #expect(try TablePart.all(of: "parkedChange", in: db).count == 1)
        #expect(try connection.commit() == "COMMIT")
        // All records are forgotten, however many parts and portions there are.
        _ = try await store.append(
            [Sample.unkeyed("new")], container: Sample.container, source: Sample.source,
            at: Sample.moment(0))
        var retention = Retention()
        retention.shadowAge = .seconds(1)
        try test.server.sql("UPDATE \(test.schema).shadowRecord SET position = 1")
        let counts = try await store.prune(retention, at: Sample.moment(1000), portion: 1500)
        #expect(counts.shadows == 4000)
        await store.close()
    }

    @Test func `marks of deleted records that are removed together update their zones once`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        let db = Database(connection)
        try connection.begin()
        for zone in ["one", "two"] {
            try db.execute(
                sql: """
                    INSERT INTO recordZone (container, database, owner, zoneOwner, zoneName, edit)
                    SELECT id, 'private', 'u', '', ?, 1 FROM container
                    """, arguments: [zone])
        }
        try db.execute(
            sql: """
                INSERT INTO shadowRecord (container, database, owner, zoneOwner, zoneName,
                    recordType, recordName, source, position, isKept, isDeleted, modifiedAt)
                SELECT id, 'private', 'u', '', CASE WHEN n % 2 = 0 THEN 'two' ELSE 'one' END,
                    'Artwork', 'r' || n, '_cloudkit', n, 1, 1, n
                FROM container, generate_series(1, 41) AS n
                """)
        let marks = try Row.fetchAll(db, sql: "SELECT * FROM shadowRecord")
        try RelayStore.forget(marks, in: db)
        let found = try Row.fetchAll(
            db,
            sql: """
                SELECT prunedTo, (SELECT count(*) FROM shadowRecord), (
                    SELECT n_tup_upd FROM pg_stat_xact_user_tables
                    WHERE schemaname = '\(test.schema)' AND relname = 'recordzone')
                FROM recordZone ORDER BY zoneName
                """
        ).map { row -> [Int64] in [row[0], row[1], row[2]] }
        #expect(found == [[41, 0, 2], [40, 0, 2]])
        connection.rollBack()
        await store.close()
    }

    /// A locked table of records does not keep the log from being pruned.
    @Test func `the log is pruned although the records are locked`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        _ = try await store.append(
            [Sample.unkeyed("one"), Sample.unkeyed("two")], container: Sample.container,
            source: Sample.source, at: Sample.moment(0))
        let head = try await store.head()
        try await store.settle(
            SettledStep(from: .start, to: ProgressMark(position: head, offset: 0)))
        let other = try test.session().connect()
        try other.query("SET idle_in_transaction_session_timeout = 0")
        try other.query("BEGIN")
        try other.query("LOCK TABLE shadowRecord IN ACCESS EXCLUSIVE MODE")
        var retention = Retention()
        retention.shadowAge = .seconds(1)
        retention.logAge = .seconds(1)
        // Pruning marks of deleted records and zones reads the table of records too.
        retention.deletedAge = nil
        let failure = await #expect(throws: StorageError.self) {
            _ = try await store.prune(retention, at: Sample.moment(1000), portion: 10)
        }
        #expect(failure?.passes == true)
        try other.query("ROLLBACK")
        let count = try test.server.sql("SELECT count(*) FROM \(test.schema).logEntry")
        #expect(count == "0")
        await store.close()
    }
}
