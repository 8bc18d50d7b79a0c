import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// The cost on a real server of lists among a week's deliveries and millions of versions.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct ReceiptCostTests {
    @Test func `the receipts of one change are found without reading others`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO receiptBlock
                (firstPosition, lastPosition, lastAt, outcomes, count, body)
            SELECT n, n, n, 2, 1, '\\x00' FROM generate_series(1, 20000) AS n WHERE n <> 10000;
            """)
        try test.server.sql("ANALYZE \(test.schema).receiptBlock")
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        let receipt = Sample.receipt(1, .accepted, at: 10_000)
        try #require(ReceiptBlock([receipt])).insert(in: db)
        #expect(try connection.commit() == "COMMIT")

        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        var filter = ReceiptFilter()
        filter.position = LogPosition(10_000)
        #expect(try ReceiptScan(filter: filter, limit: 9, bound: 99).run(in: db) == [receipt])
        var wanted = ReceiptListFilter()
        wanted.receipt = filter
        let page = try ReceiptListScan(filter: wanted, limit: 9, bound: 99)
            .run(before: nil, in: db)
        #expect(page.elements == [receipt])
        let looked = try test.rowsRead(of: "receiptblock", in: db)
        #expect(looked < 1000)
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }

    /// Each query is a round trip, and other requests wait for the reader.
    ///
    /// A list of a container without recent deliveries passes a million receipts of other
    /// containers.
    @Test func `the devices of many receipts are looked up together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            SET session_replication_role = replica;
            INSERT INTO device (serial, container, owner, deviceID, gatewayEnvironment, token,
                registeredAt, activation)
            SELECT n, container.id + n % 100, 1, 'd' || n, 'development', 't' || n, 0, 1
            FROM container, generate_series(1, 500) AS n;
            """)
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        let receipts = (UInt64(1)...500).map { number -> DeliveryReceipt in
            var receipt = Sample.receipt(number, .accepted)
            receipt.deviceSerial = number
            return receipt
        }
        for part in [receipts.prefix(300), receipts.dropFirst(300)] {
            try #require(ReceiptBlock(Array(part))).insert(in: db)
        }
        try connection.settle()
        var wanted = ReceiptListFilter()
        wanted.container = Sample.container
        let before = connection.pipeline.roundTrips
        let page = try ReceiptListScan(filter: wanted, limit: 9, bound: 9999)
            .run(before: nil, in: db)
        #expect(page.elements.map(\.deviceSerial) == [500, 400, 300, 200, 100])
        #expect(connection.pipeline.roundTrips - before < 30)
        connection.rollBack()
        await store.close()
    }

    /// A container whose subscriptions are all older than those of another container.
    @Test func `a list of one container is found without reading rows of others`() async throws {
        let test = try TestPlace()
        let store = try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            SET session_replication_role = replica;
            INSERT INTO container (id, name, environment, topics, expirationSeconds, savedAt)
            VALUES (1, 'old', 'development', '[]', 0, 0), (2, 'new', 'development', '[]', 0, 0);
            INSERT INTO "user" (id, container, name) VALUES (1, 1, 'alice'), (2, 2, 'bob');
            INSERT INTO subscription (serial, container, owner, database, subscriptionID,
                contentDigest, firesOnce, body, activation)
            SELECT n, 1 + n / 10001, 1 + n / 10001, 'public', 's' || n,
                sha256(convert_to(n::text, 'UTF8')), 0, repeat('x', 200), 1
            FROM generate_series(1, 20000) AS n;
            """)
        try test.server.sql("ANALYZE \(test.schema).subscription")
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let rows = try Row.fetchCursor(
            db, sql: ListStatements.subscriptions(in: .postgresql), arguments: [1, Int64.max])
        var serials: [Int64] = []
        while serials.count < 5, let row = try rows.next() { serials.append(row["serial"]) }
        #expect(serials == [10_000, 9999, 9998, 9997, 9996])
        let looked = try test.rowsRead(of: "subscription", in: db)
        #expect(looked < 1000)
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }

    /// Returns a store with three changes of one container, followed by those of another one at
    /// `positions`.
    private static func store(
        in test: TestPlace, others positions: String
    ) async throws -> RelayStore {
        func open() throws -> RelayStore {
            try RelayStore.open(try test.place(), as: .forTests(), settings: .forTests)
        }
        let first = try open()
        try await first.save(
            ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
        _ = try await first.append(
            ["a", "b", "c"].map { Sample.unkeyed($0) }, container: Sample.container,
            source: Sample.source, at: Sample.moment(1))
        await first.close()
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            SET session_replication_role = replica;
            INSERT INTO logEntry (position, container, appendedAt, kind, source, body)
            SELECT n, 99, 0, 1, 'other', '{}' FROM generate_series(\(positions)) AS n;
            """)
        return try open()
    }

    /// A list does not occupy a reader for as long as it takes to pass a long log.
    @Test func `a long search lets others have a turn and then continues`() async throws {
        let test = try TestPlace()
        let store = try await Self.store(in: test, others: "200000, 8000000, 200000")
        let (page, goesOn) = try await store.read { db in
            try RelayStore.changesInSpans(before: LogPosition(8_000_001), in: db) { _, _ in
                ListPage([], next: nil)
            }
        }
        #expect(goesOn && page.elements.isEmpty)
        #expect(page.next == LogPosition(7_200_001))
        let all = try await store.listedChanges(
            of: Sample.container, ChangeListFilter(), before: nil, PageBounds(rows: 10))
        #expect(all.elements.map(\.position.rawValue) == [3, 2, 1] && all.next == nil)
        await store.close()
    }

    /// If other containers fill the log, reading all of it would exceed the limit for a statement.
    @Test func `changes of a container are searched in one span of the log at a time`() async throws
    {
        let test = try TestPlace()
        let store = try await Self.store(in: test, others: "4, 250000")
        let all = try await store.listedChanges(
            of: Sample.container, ChangeListFilter(), before: nil, PageBounds(rows: 10))
        #expect(all.elements.map(\.position.rawValue) == [3, 2, 1] && all.next == nil)
        let two = try await store.listedChanges(
            of: Sample.container, ChangeListFilter(), before: nil, PageBounds(rows: 2))
        #expect(two.elements.map(\.position.rawValue) == [3, 2])
        let rest = try await store.listedChanges(
            of: Sample.container, ChangeListFilter(), before: two.next, PageBounds(rows: 2))
        #expect(rest.elements.map(\.position.rawValue) == [1] && rest.next == nil)
        await store.close()
    }
}
