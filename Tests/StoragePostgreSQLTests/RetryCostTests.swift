import Migrations
import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// The cost of finding due retries on a real server.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct RetryCostTests {
    /// A gateway that asked for a short pause while changes came leaves so many retries.
    @Test func `a few of many retries are found without reading the others`() throws {
        let place = try TestPlace()
        let session = try place.session()
        _ = try PostgresSchema(
            place: try place.place(), migrations: Migration.releasedOnPostgreSQL
        ).apply(try session.connect(), makesSchema: true)
        let connection = try session.connectAgain()
        let db = Database(connection)
        try connection.begin()
        // Half of them are due at the same moment.
        try db.execute(
            sql: """
                INSERT INTO retry (deliveryID, container, position, "offset", subscriptionSerial,
                    deviceSerial, attempts, dueAt, reason, body, lane)
                SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), 1, 1, n, 1, 1, 1,
                    greatest(n, 2000), '', '', 'lane'
                FROM generate_series(1, 4000) AS n
                """)
        #expect(try connection.commit() == "COMMIT")

        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let reading = RetryReading(
            excluding: Set((UInt64(1)...10).map { DeliveryID(UUIDBytes(high: 0, low: $0)) }),
            isHeld: { _ in false })
        #expect(try reading.nextDue(in: db) == Timestamp(stored: 2000))
        // The bodies are empty, so every retry that is read is quarantined.
        let before = connection.pipeline.roundTrips
        let (due, damaged) = try reading.due(
            at: Timestamp(stored: 5000), limit: 20, UnreadableRows(), in: db)
        #expect(connection.pipeline.roundTrips - before < 20)
        #expect(due == [])
        #expect(Set(damaged).count == 20)
        #expect(damaged.allSatisfy { !reading.excluding.contains($0) })
        let looked = try place.rowsRead(of: "retry", in: db)
        #expect(looked < 1000)
        #expect(try connection.commit() == "COMMIT")
    }

    /// Before a retry is sent, the relay checks several conditions for its delivery.
    ///
    /// Over a network, a query for each delivery would take as long as all of them together.
    @Test func `the conditions that block retries are looked up together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let deliveries = (UInt64(1)...200).map { Sample.owed($0) }
        let connection = try test.session().connectAgain()
        let db = Database(connection)
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let withdrawn = try Withdrawal.among(deliveries, in: db).withdrawals
        #expect(withdrawn.count == 200 && withdrawn.values.allSatisfy { $0 == .device })
        #expect(try Kindness.among(deliveries, in: db).isEmpty)
        #expect(connection.pipeline.roundTrips < 30)
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }

    /// A step is like that if many pushes are held back overnight, or an app was deleted from many
    /// devices.
    @Test func `throttles, holds and dead tokens of a step are looked up together`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let registered = try await store.register(
            Sample.device("phone", of: "alice", token: 1), at: Sample.moment(1))
        let deliveries = (UInt64(1)...200).map { Sample.owed($0) }
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        func cost(_ body: () throws -> Void) throws -> Int {
            let before = connection.pipeline.roundTrips
            try body()
            return connection.pipeline.roundTrips - before
        }
        let lines = deliveries.map { ThrottledLine($0.delivery) }
        let throttles = try cost {
            let pasts = try ThrottlePast.among(lines, at: Sample.moment(1), in: db)
            #expect(pasts.map(\.line) == lines && pasts.allSatisfy(\.places.isEmpty))
        }
        #expect(throttles < 20)
        let retries = deliveries.enumerated().map { index, owed -> Retry in
            var retry = Retry(
                delivery: owed, attempts: 0, dueAt: Sample.moment(9), reason: .held(.paused))
            // The first retry was judged by the device version that is still there.
            let serial = index == 0 ? registered.serial : registered.serial + UInt64(index)
            retry.judgedBy = JudgedVersions(subscription: nil, device: serial)
            return retry
        }
        let numbers = try db.numbers(of: [Sample.container])
        let holds = try cost {
            let use = try HeldUse(among: retries, of: numbers, in: db)
            #expect(use.outdated == Set(deliveries.dropFirst().map(\.delivery.id)))
        }
        #expect(holds < 10)
        var commit = OpenCommit(db, head: try await store.head(), quotas: Quotas())
        let container = try commit.container(Sample.container)
        let dead = (UInt8(1)...200).map { number in
            DeadToken(
                container: Sample.container, token: Sample.token(number), since: Sample.moment(2))
        }
        let before = connection.pipeline.roundTrips
        try DeviceStep(container: container, now: Sample.moment(3)).forget(dead, in: &commit)
        try connection.settle()
        #expect(connection.pipeline.roundTrips - before < 20)
        #expect(commit.appended.map(\.entry.body) == [.devicesEnded(serials: [registered.serial])])
        connection.rollBack()
        await store.close()
    }

    /// A crowd's devices may have quiet hours; regression: the bound of each device was looked up
    /// separately.
    @Test func `the bounds of held deliveries of many devices are enforced together`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        let numbers = try db.numbers(of: [Sample.container])
        let number = try #require(numbers[Sample.container])
        let most = UInt64(Limits.maximumHeldDeliveries)
        // The last ones are for one device.
        let retries = (1...200 + most).map { (index: UInt64) -> Retry in
            var owed = Sample.owed(index)
            if index > 200 { owed.delivery.deviceID = Sample.identifier("device-1") }
            return Retry(
                delivery: owed, attempts: 0, dueAt: Sample.moment(9), reason: .held(.quietHours))
        }
        let before = connection.pipeline.roundTrips
        var use = try HeldUse(among: retries, of: numbers, in: db)
        for retry in retries {
            let row = HeldRow(retry, try StoredDelivery(retry.delivery))
            try row.save(of: number, &use, in: db)
        }
        try connection.settle()
        #expect(connection.pipeline.roundTrips - before < 30)
        // The oldest delivery of that device is one of those that have a row.
        #expect(try Int64.fetchOne(db, sql: "SELECT count(*) FROM retry") == 219)
        #expect(try Int64.fetchOne(db, sql: "SELECT sum(deliveries)::bigint FROM digest") == 1)
        connection.rollBack()
        await store.close()
    }

    /// A change that fires very many subscriptions of as many users has such a range.
    @Test func `the subscriptions of a range and their owners' devices are looked up together`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        // The bodies cannot be read, and each is reported. They are looked up together all the
        // same.
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            INSERT INTO "user" (id, container, name)
            SELECT n, container.id, 'user-' || n FROM container, generate_series(1, 200) AS n;
            INSERT INTO subscription (serial, container, owner, database, subscriptionID,
                contentDigest, firesOnce, body, activation)
            SELECT id, container, id, 'public', 's', sha256(convert_to(name, 'UTF8')), 0, '', 1
            FROM "user";
            """)
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin(" ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let unreadable = UnreadableRows()
        var reading = RangeReading(position: LogPosition(9), unreadable: unreadable)
        let serials = (UInt64(1)...201).map { $0 }
        let members = try reading.members(serials[...], in: Database(connection))
        #expect(members.isEmpty)
        #expect(unreadable.takeNews().count == 201)
        #expect(connection.pipeline.roundTrips < 20)
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }
}
