import ChangeSources
import GatewaySimulator
import PostgresFollowing
import RelayModel
import RelayTestKit
import Testing

/// A second snapshot: records that it no longer contains are deleted.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .timeLimit(.minutes(15)))
struct SnapshotEndTests {
    private static let table = """
        CREATE TABLE orders (id int PRIMARY KEY, status text);
        INSERT INTO orders VALUES (7, 'paid'), (8, 'shipped')
        """

    /// Waits until no follower is connected, and resets the slot or the outbox to before its
    /// snapshot.
    private static func forget(
        _ server: PostgresServer, _ name: String, outbox: Bool, _ meanwhile: String
    ) async throws {
        try await server.wait(
            for: "0",
            of: "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'belfry' "
                + "AND datname = '\(name)'")
        try server.sql(meanwhile, in: name)
        try server.sql(
            outbox
                ? "UPDATE belfry.outbox_state SET has_begun = false"
                : "SELECT pg_drop_replication_slot('\(name)')", in: name)
    }

    @Test(arguments: [false, true])
    func `records missing in a second snapshot are deleted and fire subscriptions`(
        outbox: Bool
    ) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database(Self.table)
        var follow: JSONObject = [
            "url": .string("host=\(server.folder) user=postgres dbname=\(name)"),
            "slot": .string(name), "make": true, "tables": ["public.orders"],
        ]
        if outbox { follow["outbox"] = true }
        let again = JSONValue.object(follow)
        let definition: JSONObject = [
            "preset": "postgres", "follow": again,
            "mapping": ["recordTypes": ["public.orders": "Order"]],
        ]
        try await ServedRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Order", ["shadow": true]
            ).expect(200)
            try await relay.container.save([
                "subscriptionID": "orders", "subscriptionType": "query",
                "query": ["recordType": "Order", "predicate": #"status = "shipped""#],
                "firesOn": ["delete"], "notificationInfo": ["alertBody": "Shipped"],
            ])
            try await relay.container.set(source: "shop", definition)
            _ = try await relay.source("shop", is: "following")
            let path = "\(relay.container.path)/sources/shop"
            try await relay.client.administer("PUT", path, ["follow": .null]).expect(200)
            try await Self.forget(
                server, name, outbox: outbox,
                "DELETE FROM orders WHERE id = 8; INSERT INTO orders VALUES (9, 'shipped')")
            try await relay.client.administer("PUT", path, ["follow": again]).expect(200)
            _ = try await relay.source("shop", is: "following")
            // The kept record says that the order was shipped.
            try server.sql("DELETE FROM orders WHERE id = 9", in: name)
            let pushes = try await relay.gateway.simulated.pushes(count: 4, within: .patience)
            #expect(
                pushes.map(\.line).sorted() == [
                    "phone: qry orders deleted 8", "phone: qry orders deleted 9",
                    "tablet: qry orders deleted 8", "tablet: qry orders deleted 9",
                ])
        }
    }

    /// By the version the relay knows which records the snapshot contained.
    @Test(arguments: [false, true])
    func `a repeated snapshot has a higher version and announces its end`(
        outbox: Bool
    ) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database(Self.table)
        let settings =
            try outbox ? server.outbox(name, ["public.orders"]) : server.settings(name)
        var ends: [SnapshotEnd] = []
        for number in 0..<2 {
            let seen = try await Followed().follow(settings) { followed in
                await followed.until { $0.words.last == "following" }
                return followed.seen
            }
            #expect(seen.rows.count == 2 - number)
            #expect(Set(seen.rows.compactMap(\.version)) == Set(seen.ends.map(\.version)))
            ends += seen.ends
            guard number == 0 else { break }
            try await Self.forget(
                server, name, outbox: outbox, "DELETE FROM orders WHERE id = 8")
        }
        #expect(ends.count == 2)
        #expect(
            ends.allSatisfy { $0.tables == [SnapshotEnd.Table(schema: "public", name: "orders")] })
        #expect(ends[0].version < ends[1].version)
    }

    @Test func `a publication that leaves out deletions ends no table`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            Self.table
                + "; CREATE PUBLICATION belfry FOR TABLE orders WITH (publish = 'insert, update')")
        let seen = try await Followed().follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            return followed.seen
        }
        #expect(seen.rows.count == 2)
        #expect(seen.ends == [])
    }

    @Test func `a table of which rows were parked is told as incomplete`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(
            Self.table + "; CREATE TABLE good (id int PRIMARY KEY); INSERT INTO good VALUES (1)")
        let followed = Followed()
        followed.park("orders")
        let ends = try await followed.follow(try server.settings(name)) { followed in
            await followed.until { $0.words.last == "following" }
            return followed.seen.ends
        }
        #expect(ends.flatMap(\.tables).map(\.name) == ["good"])
        #expect(ends.flatMap(\.incomplete).map(\.name) == ["orders"])
    }

    /// Otherwise the changes of such a transaction would have lower versions than the snapshot.
    @Test func `a snapshot with an outbox waits for transactions that have written`()
        async throws
    {
        let server = try PostgresServer.plain()
        let name = try server.database(Self.table)
        let settings = try server.outbox(name, ["public.orders"])
        try await Followed().follow(settings) { followed in
            await followed.until { $0.words.last == "following" }
        }
        try await Self.forget(server, name, outbox: true, "SELECT")
        let session = try PostgresSession(server, name)
        try session.run("BEGIN; UPDATE orders SET status = 'lost' WHERE id = 7")
        try server.sql("UPDATE orders SET status = 'sent' WHERE id = 8", in: name)
        let followed = Followed()
        try await followed.run(settings) { follower in
            let isWaiting = await Turns.yield {
                follower.status.warning?.contains("one is still open") == true
            }
            #expect(isWaiting)
            try session.run("COMMIT")
            await followed.until { $0.words.last == "following" }
        }
        session.end()
        #expect(
            Set(followed.seen.rows.map(line)) == [
                #"create orders[id] - {"id":7,"status":"lost"} snapshot"#,
                #"create orders[id] - {"id":8,"status":"sent"} snapshot"#,
            ])
    }
}
