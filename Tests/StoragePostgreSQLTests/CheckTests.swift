import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import StoragePostgreSQL

/// What a check reports about an incomplete copy of a database, such as one with a table that was
/// not restored.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct CheckTests {
    @Test(arguments: ["store", "progress", "backlog", "sessionSecret"])
    func `a missing row that each store has once is reported`(table: String) throws {
        let test = try TestPlace()
        let place = try test.place()
        _ = try RelayStore.migrate(place)
        #expect(try RelayStore.check(place).problems == [])
        try test.server.sql("DELETE FROM \(test.schema).\(table)")
        #expect(
            try RelayStore.check(place).problems
                == ["1 × a row that every store must have is missing"])
    }

    @Test func `rows of a missing container are reported`() throws {
        let test = try TestPlace()
        let place = try test.place()
        _ = try RelayStore.migrate(place)
        try test.server.sql(
            """
            INSERT INTO \(test.schema).logEntry
                (position, container, appendedAt, kind, source, body)
                VALUES (1, 7, 0, 1, 's', '{}');
            INSERT INTO \(test.schema).dedupe
                (container, source, kind, key, digest, position, rememberedUntil)
                VALUES (7, 's', 1, '', '', 1, 0), (8, 's', 1, '', '', 1, 0)
            """)
        #expect(
            try RelayStore.check(place).problems == [
                "1 × a row of logEntry belongs to a container that is missing",
                "2 × a row of dedupe belongs to a container that is missing",
            ])
    }

    @Test func `a delivery that is in two places is reported`() throws {
        let test = try TestPlace()
        let place = try test.place()
        _ = try RelayStore.migrate(place)
        try test.server.sql(
            """
            SET search_path = \(test.schema);
            SET session_replication_role = replica;
            INSERT INTO digest (container, owner, subscription, device, reason, openedAt, dueAt,
                decidedAt, deliveries, count, deliveryID, position, "offset",
                subscriptionSerial, deviceSerial, body)
            SELECT 1, 'user', 'public/' || n, 'phone', '', 1, 1, 1, 1, 1,
                decode(lpad(to_hex(n), 32, '0'), 'hex'), 1, 0, 1, 1, ''
            FROM generate_series(1, 3) AS n;
            INSERT INTO retry (deliveryID, container, position, "offset", subscriptionSerial,
                deviceSerial, attempts, dueAt, reason, body)
            SELECT deliveryID, 1, 1, 1, 1, 1, 1, 1, '', '' FROM digest
            WHERE subscription = 'public/1';
            INSERT INTO deadLetter (deliveryID, container, position, "offset", subscriptionSerial,
                deviceSerial, attempts, status, reason, endedAt, body)
            SELECT deliveryID, 1, 1, 1, 1, 1, 1, 400, '', 1, '' FROM digest
            WHERE subscription = 'public/2';
            """)
        let sentence = "2 × a delivery is the newest of an open digest, and also pending or dead"
        #expect(try RelayStore.check(place).problems.contains(sentence))
    }
}
