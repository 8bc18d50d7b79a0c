import GRDB
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// The constraints of the schema refuse wrong rows, whatever the code above does.
@Suite struct SchemaConstraintTests {
    private static let container = """
        INSERT INTO container (id, name, environment, topics, expirationSeconds, savedAt)
        VALUES (1, 'c', 'production', '[]', 0, 0), (2, 'd', 'production', '[]', 0, 0);
        INSERT INTO user (id, container, name) VALUES (1, 1, 'ann'), (2, 2, 'bob');
        """

    private static func device(_ id: String, _ token: String, ended: String = "NULL") -> String {
        """
        INSERT INTO device (container, owner, deviceID, gateway, gatewayEnvironment, token,
            registeredAt, activation, ended)
        VALUES (1, 1, '\(id)', 'apns', 'production', '\(token)', 0, 1, \(ended));
        """
    }

    private static func subscription(
        _ id: String, digest: String, ended: String = "NULL", owner: Int = 1
    ) -> String {
        """
        INSERT INTO subscription (container, owner, database, subscriptionID, contentDigest,
            firesOnce, body, activation, ended)
        VALUES (1, \(owner), 'public', '\(id)', \(digest), 0, '{}', 1, \(ended));
        """
    }

    private static func waiting(payload: String, takenAt: String, owner: Int = 1) -> String {
        """
        INSERT INTO courier VALUES (1, 'a', 0, 0);
        INSERT INTO courierNotification VALUES (1, 1, 1, \(owner), zeroblob(16), 1, NULL,
            \(payload), 0, 9, \(takenAt));
        """
    }

    private static let one = "zeroblob(32)"
    private static let two = "x'\(String(repeating: "01", count: 32))'"

    @Test(arguments: [
        "INSERT INTO store VALUES (2, zeroblob(16), 0)",
        "UPDATE store SET identity = zeroblob(15)",
        "UPDATE container SET teamID = 'T'",
        "UPDATE container SET environment = 'staging'",
        "UPDATE container SET expirationSeconds = -1",
        "INSERT INTO user (container, name) VALUES (1, 'ann')",
        "INSERT INTO user (container, name) VALUES (9, 'ann')",
        "INSERT INTO accessKey VALUES (1, 'k', 'password', 'v', '', 0, NULL)",
        device("a", "t1") + device("a", "t2"),
        device("a", "t1") + device("b", "t1"),
        device("a", "t1", ended: "1"),
        subscription("a", digest: one) + subscription("a", digest: two),
        subscription("a", digest: one) + subscription("b", digest: one),
        subscription("a", digest: "x'00'"),
        subscription("a", digest: one, owner: 2),
        "INSERT INTO onceClaim VALUES (77, 1)",
        "INSERT INTO shardHead VALUES (1, 0, 0)",
        "UPDATE shardHead SET position = -1",
        "INSERT INTO courier VALUES (1, '', 0, 0)",
        "INSERT INTO courier VALUES (1, 'a', 0, 0), (2, 'a', 0, 0)",
        waiting(payload: "'{}'", takenAt: "5"),
        waiting(payload: "NULL", takenAt: "NULL"),
        waiting(payload: "'{}'", takenAt: "NULL", owner: 2),
        device("a", "t1") + "UPDATE device SET gateway = 'mail'",
        "INSERT INTO inbox VALUES (1, 1, 1, 2)",
        "INSERT INTO inbox VALUES (2, 1, 1, 0)",
        "UPDATE sessionSecret SET secret = zeroblob(31)",
        "INSERT INTO sessionSecret VALUES (2, zeroblob(32))",
        "INSERT INTO userSession VALUES (1, zeroblob(15), 1, 0, 0, NULL, NULL)",
        "INSERT INTO userSession VALUES (2, zeroblob(16), 1, 0, 0, NULL, NULL)",
        "INSERT INTO logEntry VALUES (1, 9, 0, 2, NULL, 0, '{}', 0, NULL, NULL)",
        "INSERT INTO logEntry VALUES (1, 1, 0, 1, NULL, 0, '{}', 0, NULL, NULL)",
        "INSERT INTO logEntry VALUES (1, 1, 0, 2, NULL, 1, '{}', 0, NULL, NULL)",
        "INSERT INTO logEntry VALUES (0, 1, 0, 2, NULL, 0, '{}', 0, NULL, NULL)",
        "INSERT INTO logEntry VALUES (1, 1, 0, 6, NULL, 0, '{}', 0, NULL, NULL)",
        "INSERT INTO logEntry VALUES (1, 1, 'now', 2, NULL, 0, '{}', 0, NULL, NULL)",
        "INSERT INTO dedupe VALUES (1, 's', 5, x'00', x'00', 1, 0)",
        "INSERT INTO progress (shard, position, \"offset\", epoch) VALUES (1, 0, 0, 0)",
        "UPDATE progress SET \"offset\" = -1",
        "UPDATE progress SET endedPrunedTo = 9; INSERT INTO stateSnapshot "
            + "VALUES (0, zeroblob(16), 8, 0)",
        "INSERT INTO retry VALUES (x'00', 1, 1, 0, 1, 1, 0, 0, '', '{}', '', 0, 0, "
            + "NULL, NULL, NULL, NULL)",
        "INSERT INTO retry VALUES (zeroblob(16), 9, 1, 0, 1, 1, 0, 0, '', '{}', '', 0, 0, "
            + "NULL, NULL, NULL, NULL)",
        "INSERT INTO retry VALUES (zeroblob(16), 1, 1, 0, 1, 1, 0, 0, '', '{}', '', 2, 0, "
            + "NULL, NULL, NULL, NULL)",
        "INSERT INTO deadLetter VALUES (zeroblob(16), 1, 1, 0, 1, 1, 0, 1000, '', 0, '{}', NULL)",
        "INSERT INTO rangeTask VALUES (1, 1, 5, 0, 1, 0)",
        "INSERT INTO badge VALUES (1, 'd', 1, -1)",
        "INSERT INTO receiptBlock VALUES (1, 2, 1, 0, 0, 1, x'00')",
    ])
    func `the schema refuses`(sql: String) throws {
        let home = try TemporaryStore()
        _ = try RelayStore.migrate(path: home.path)
        let queue = try DatabaseQueue(path: home.path)
        try queue.write { try $0.execute(sql: Self.container) }
        let error = #expect(throws: DatabaseError.self) {
            try queue.write { try $0.execute(sql: sql) }
        }
        #expect(error?.resultCode == .SQLITE_CONSTRAINT)
        try queue.close()
    }

    @Test func `ended versions do not conflict with new ones`() throws {
        let home = try TemporaryStore()
        _ = try RelayStore.migrate(path: home.path)
        let queue = try DatabaseQueue(path: home.path)
        try queue.write { db in
            try db.execute(
                sql: Self.container + Self.device("a", "t", ended: "2") + Self.device("a", "t")
                    + Self.subscription("a", digest: Self.one, ended: "2")
                    + Self.subscription("a", digest: Self.one))
        }
        try queue.close()
    }

    @Test func `no check of a row builds an index`() throws {
        let home = try TemporaryStore()
        _ = try RelayStore.migrate(path: home.path)
        let queue = try DatabaseQueue(path: home.path)
        let dear = try queue.read { db in
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL")
            #expect(tables.count > 40)
            return try tables.filter { table in
                let columns = try db.columns(in: table).map { _ in "NULL" }
                return try GRDB.Row.fetchAll(
                    db,
                    sql: "EXPLAIN INSERT INTO \(table) VALUES (\(columns.joined(separator: ",")))"
                ).contains { ($0["opcode"] as String) == "OpenEphemeral" }
            }
        }
        // An `IN` list of three or more words is expensive; write comparisons.
        #expect(dear == [])
        try queue.close()
    }

    @Test(arguments: [
        (
            "SELECT serial FROM subscription WHERE owner = 1 AND database = 'public' "
                + "AND subscriptionID = 'a' AND ended IS NULL", "subscriptionActiveID"
        ),
        (
            "SELECT serial FROM subscription WHERE owner = 1 AND database = 'public' "
                + "AND contentDigest = x'00' AND ended IS NULL", "subscriptionActiveContent"
        ),
        (
            "SELECT serial FROM device WHERE container = 1 AND ended IS NULL "
                + "AND (token = 'a' OR token = 'b')", "deviceActiveToken"
        ),
        (
            "SELECT dueAt, deliveryID FROM retry WHERE (container, lane, dueAt) > (1, 'a', 1) "
                + "ORDER BY container, lane, dueAt LIMIT 1", "retryLaneDue"
        ),
        (
            "SELECT container, lane FROM retry WHERE (container, lane) > (1, 'a') "
                + "ORDER BY container, lane LIMIT 1", "retryLaneDue"
        ),
        ("SELECT serial FROM subscription WHERE ended <= 5 LIMIT 10", "subscriptionEnded"),
        (
            "SELECT * FROM deadLetter WHERE container = 1 ORDER BY endedAt DESC",
            "deadLetterContainer"
        ),
        (
            "SELECT key FROM dedupe WHERE rememberedUntil <= 5 ORDER BY rememberedUntil LIMIT 9",
            "dedupeRememberedUntil"
        ),
    ])
    func `a query uses its index and sorts nothing`(sql: String, index: String) throws {
        let home = try TemporaryStore()
        _ = try RelayStore.migrate(path: home.path)
        let queue = try DatabaseQueue(path: home.path)
        let plan = try queue.read { db in
            try GRDB.Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(sql)")
                .map { $0["detail"] as String }
        }
        #expect(plan.contains { $0.contains(index) }, "\(plan)")
        #expect(plan.contains { $0.contains("SCAN") || $0.contains("TEMP B-TREE") } == false)
        try queue.close()
    }
}
