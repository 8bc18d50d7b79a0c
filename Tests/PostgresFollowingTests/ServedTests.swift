import Foundation
import GatewaySimulator
import PostgresFollowing
import RelayModel
import RelayTestKit
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// A relay follows the databases of its sources by itself.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"),
    .serialized, .timeLimit(.minutes(15)))
struct ServedTests {
    private static func follow(
        _ server: PostgresServer, _ database: String, _ members: JSONObject = [:]
    ) -> JSONObject {
        var follow: JSONObject = [
            "url": .string("host=\(server.folder) user=postgres dbname=\(database)"),
            "slot": .string(database), "make": true,
        ]
        follow.members += members.members
        return [
            "preset": "postgres", "follow": .object(follow),
            "mapping": ["recordTypes": ["public.orders": "Order"]],
        ]
    }

    private static let orders: JSONValue = [
        "subscriptionID": "orders", "subscriptionType": "query",
        "query": ["recordType": "Order", "predicate": #"status = "shipped""#],
        "firesOn": ["update", "delete"], "notificationInfo": ["alertBody": "Shipped"],
    ]

    private static let table = """
        CREATE TABLE orders (id int PRIMARY KEY, status text);
        INSERT INTO orders VALUES (7, 'paid'), (8, 'shipped')
        """

    @Test(arguments: [false, true])
    func `a source is followed from its rows to a push, with the relay's former images`(
        outbox: Bool
    ) async throws {
        let server = try outbox ? PostgresServer.plain() : PostgresServer.shared()
        let name = try server.database(Self.table)
        try await ServedRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Order", ["shadow": true]
            ).expect(200)
            try await relay.container.save(Self.orders)
            try await relay.container.set(
                source: "shop",
                Self.follow(
                    server, name, outbox ? ["outbox": true, "tables": ["public.orders"]] : [:]))
            _ = try await relay.source("shop", is: "following")
            try server.sql(
                "UPDATE orders SET status = 'shipped' WHERE id = 7; DELETE FROM orders WHERE id = 8",
                in: name)
            let pushes = try await relay.gateway.simulated.pushes(count: 4, within: .patience)
            #expect(
                pushes.map(\.line).sorted() == [
                    "phone: qry orders deleted 8", "phone: qry orders updated 7",
                    "tablet: qry orders deleted 8", "tablet: qry orders updated 7",
                ])
            let shown = try await relay.source("shop", is: "following")
            #expect(shown.value(at: ["following", "rows"]) == 4)
            #expect(shown.value(at: ["following", "verdict"]) == "well")
            #expect(shown.value(at: ["follow", "slot"]) == .string(name))
            // The server's log holds only the key; the rest of the row came from the relay's
            // records.
            let changes = try await relay.client.administer(
                "GET", "\(relay.container.path)/changes?limit=1")
            #expect(changes.text.contains(#""status":"shipped""#), "\(changes.text)")
            try await told(relay)
        }
    }

    @Test func `a row that changes its key keeps a large value that did not change`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(
            """
            CREATE TABLE orders (id int PRIMARY KEY, status text, note text);
            ALTER TABLE orders ALTER note SET STORAGE EXTERNAL;
            INSERT INTO orders VALUES (7, 'paid', repeat('x', 3000))
            """)
        try await ServedRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Order", ["shadow": true]
            ).expect(200)
            try await relay.container.save([
                "subscriptionID": "long", "subscriptionType": "query",
                "query": ["recordType": "Order", "predicate": #"note BEGINSWITH "xxx""#],
                "firesOn": ["create"], "notificationInfo": ["alertBody": "Long"],
            ])
            try await relay.container.set(source: "shop", Self.follow(server, name))
            _ = try await relay.source("shop", is: "following")
            try server.sql("UPDATE orders SET id = 9", in: name)
            let pushes = try await relay.gateway.simulated.pushes(count: 2, within: .patience)
            #expect(
                pushes.map(\.line).sorted() == [
                    "phone: qry long created 9", "tablet: qry long created 9",
                ])
        }
    }

    /// Checks that the overview and the metrics report the same.
    private func told(_ relay: ServedRelay) async throws {
        let overview = try await relay.client.administer("GET", "overview").expect(200)
        #expect(overview.text.contains(#""state":"following""#))
        let metrics = try await relay.client.call("GET", "/metrics").expect(200)
        let labels = #"container="iCloud.com.example.Art",environment="development",source="shop""#
        #expect(metrics.text.contains("belfry_follow_rows_total{\(labels)} 4"), "\(metrics.text)")
        #expect(metrics.text.contains(#"state="following"} 1"#))
    }

    @Test func `two sources on one slot and a missing publication are reported with advice`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(Self.table)
        try await ServedRelay.with { relay in
            try await relay.container.set(source: "shop", Self.follow(server, name))
            _ = try await relay.source("shop", is: "following")
            var second = Self.follow(server, name)
            second["verification"] = ["scheme": "none"]
            let saved = try await relay.client.administer(
                "PUT", "\(relay.container.path)/sources/twice", .object(second)
            ).expect(201)
            let state = saved.json.value(at: ["following", "state"])
            #expect(state == "connecting" || state == "slotTaken", "\(saved.text)")
            let twice = try await relay.source("twice", is: "slotTaken")
            #expect(
                twice.value(at: ["following", "sentence"])
                    == .string(FollowProblem.slotTaken("\(name) is active").advice))
            #expect(twice.value(at: ["following", "verdict"]) == "waiting")
            let path = "\(relay.container.path)/sources/twice"
            // The settings that are given change, and the others stay.
            try await relay.client.administer(
                "PUT", path, ["follow": ["publication": "other", "make": false]]
            ).expect(200)
            let other = try await relay.source("twice", is: "publicationMissing")
            #expect(other.value(at: ["following", "verdict"]) == "broken")
            #expect(other.value(at: ["follow", "slot"]) == .string(name))
            // A deleted source releases its slot.
            try await relay.client.administer(
                "DELETE", "\(relay.container.path)/sources/shop"
            ).expect(200)
            try await server.wait(
                for: "f",
                of: "SELECT active FROM pg_replication_slots WHERE slot_name = '\(name)'")
            let ended = try await relay.client.administer("PUT", path, ["follow": .null])
                .expect(200)
            #expect(
                ended.text.contains("SELECT pg_drop_replication_slot('\(name)')"), "\(ended.text)")
            let shown = try await relay.client.administer("GET", path)
            #expect(shown["follow"] == nil && shown["following"] == nil)
        }
    }

    /// Terminates the follower's connections to a database.
    private static let goodbye = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'belfry' AND datname =
        """

    @Test func `a database that was away is followed again`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(Self.table)
        try await ServedRelay.with { relay in
            try await relay.container.set(source: "shop", Self.follow(server, name))
            _ = try await relay.source("shop", is: "following")
            try server.sql("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
            try server.sql("\(Self.goodbye) '\(name)'")
            let away = try await relay.source("shop", is: "unreachable")
            #expect(away.value(at: ["following", "verdict"]) == "waiting")
            try server.sql("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
            try server.sql("INSERT INTO orders VALUES (9, 'paid')", in: name)
            _ = try await relay.source("shop", is: "following") {
                $0.value(at: ["following", "rows"]) == 3
            }
        }
    }

    @Test func `a missing slot is created again when the source is saved again`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(Self.table)
        try await ServedRelay.with { relay in
            try await relay.container.set(source: "shop", Self.follow(server, name))
            _ = try await relay.source("shop", is: "following")
            try server.sql("\(Self.goodbye) '\(name)'")
            try await server.wait(
                for: "1",
                of: "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots "
                    + "WHERE slot_name = '\(name)' AND NOT active")
            let gone = try await relay.source("shop", is: "slotMissing")
            #expect(gone.value(at: ["following", "verdict"]) == "broken")
            // Repeating the setting `make` is the decision to begin anew.
            try await relay.client.administer(
                "PUT", "\(relay.container.path)/sources/shop", ["follow": ["make": true]]
            ).expect(200)
            let anew = try await relay.source("shop", is: "following")
            #expect(anew.value(at: ["following", "rows"]) == 2)
        }
    }

    @Test func `a restored store does not continue past a gap until an operator decides`()
        async throws
    {
        let server = try PostgresServer.shared()
        let name = try server.database(Self.table)
        let store = try TemporaryStore()
        let gateway = try await SampleGateway.start(
            in: URL(filePath: store.path).deletingLastPathComponent())
        let made = Mutex<SampleContainer?>(nil)
        try await ServedRelay.with(store, gateway) { relay in
            made.withLock { $0 = relay.container }
            try await relay.container.set(source: "shop", Self.follow(server, name))
            _ = try await relay.source("shop", is: "following")
        }
        let copy = store.path + ".copy"
        _ = try RelayStore.backUp(path: store.path, to: copy)
        let container = made.withLock { $0 }
        try server.sql("INSERT INTO orders VALUES (9, 'paid')", in: name)
        let inserted = try server.sql("SELECT pg_current_wal_lsn()")
        try await ServedRelay.with(store, gateway, known: container) { relay in
            _ = try await relay.source("shop", is: "following") {
                $0.value(at: ["following", "rows"]) == 1
            }
            // Waits for the confirmation. Otherwise the row would come again, and nothing would be
            // missing.
            try await server.wait(
                for: "t",
                of: "SELECT confirmed_flush_lsn >= '\(inserted)' FROM pg_replication_slots "
                    + "WHERE slot_name = '\(name)'")
        }
        _ = try RelayStore.restore(from: copy, to: store.path, over: .movedAside)
        for makesAnew in [false, true] {
            try await ServedRelay.with(store, gateway, known: container) { relay in
                try await Self.decide(relay, server, name, makesAnew: makesAnew)
            }
            // From then on the restored store continues by itself.
            try await ServedRelay.with(store, gateway, known: container) { relay in
                _ = try await relay.source("shop", is: "following")
            }
            guard !makesAnew else { break }
            for ending in ["", "-wal", "-witness"] {
                try? FileManager.default.removeItem(atPath: store.path + "-replaced" + ending)
            }
            _ = try RelayStore.restore(from: copy, to: store.path, over: .movedAside)
        }
        await gateway.simulated.stop()
    }

    /// Checks that a restored relay stops, and then decides that it continues or begins anew.
    private static func decide(
        _ relay: ServedRelay, _ server: PostgresServer, _ name: String, makesAnew: Bool
    ) async throws {
        let lacking = try await relay.source("shop", is: "storeRestored")
        #expect(lacking.value(at: ["following", "verdict"]) == "broken")
        let sentence = lacking.value(at: ["following", "sentence"])?.text ?? ""
        #expect(sentence.contains("the slot \(name) is confirmed up to"), "\(sentence)")
        #expect(sentence.contains("the last change that it contains is of "), "\(sentence)")
        if makesAnew { try server.sql("SELECT pg_drop_replication_slot('\(name)')") }
        try await relay.client.administer(
            "PUT", "\(relay.container.path)/sources/shop", ["follow": ["make": true]]
        ).expect(200)
        _ = try await relay.source("shop", is: "following") {
            $0.value(at: ["following", "rows"]) == (makesAnew ? 3 : 0)
        }
    }

    @Test func `what a deleted source leaves behind is reported if no other source uses it`()
        async throws
    {
        try await ServedRelay.with { relay in
            let place = "\(relay.container.path)/sources/"
            for (name, slot) in [("shop", "one"), ("twice", "one"), ("other", "two")] {
                try await relay.client.administer(
                    "PUT", place + name,
                    [
                        "preset": "postgres",
                        "follow": [
                            "url": "postgresql://127.0.0.1:1/shop", "slot": .string(slot),
                        ],
                    ]
                ).expect(201)
            }
            // Another address may still be the same database. Another slot leaves the former one
            // behind.
            let changes: [(follow: JSONValue, hasLeft: Bool)] = [
                (["url": "postgresql://localhost:1/shop"], false), (["slot": "three"], true),
                (["url": "postgresql://127.0.0.1:1/shop", "slot": "two"], true),
            ]
            for (follow, hasLeft) in changes {
                let saved = try await relay.client.administer(
                    "PUT", place + "other", ["follow": follow]
                ).expect(200)
                #expect((saved.json.value(at: ["left"]) != nil) == hasLeft, "\(saved.text)")
            }
            let deletions: [(name: String, slot: String?)] = [
                ("twice", nil), ("shop", "one"), ("other", "two"),
            ]
            for (name, slot) in deletions {
                let gone = try await relay.client.administer("DELETE", place + name).expect(200)
                let left = gone.json.value(at: ["left"])?.text
                let drop = slot.map { "SELECT pg_drop_replication_slot('\($0)')" }
                #expect((left == nil) == (drop == nil), "\(gone.text)")
                #expect(drop.map { left?.contains($0) == true } ?? true, "\(gone.text)")
            }
        }
    }

    @Test func `a mapping that names a table that is not followed causes a warning`() async throws {
        try await ServedRelay.with { relay in
            let saved = try await relay.client.administer(
                "PUT", "\(relay.container.path)/sources/shop",
                [
                    "preset": "postgres",
                    "follow": [
                        "url": "postgresql://127.0.0.1:1/shop",
                        "tables": ["public.products", #"shop."Todos""#],
                    ],
                    "mapping": [
                        "owner": ["column": "user_id"],
                        "tables": ["prodcts": ["owner": .null], "shop.Todos": ["owner": .null]],
                    ],
                ]
            ).expect(201)
            let warnings: JSONValue = [
                .string(
                    "mapping.tables: no received change and no followed table has the table "
                        + "\"prodcts\"; did you mean \"products\"?")
            ]
            #expect(saved.json.value(at: ["warnings"]) == warnings, "\(saved.text)")
            let shown = try await relay.client.administer(
                "GET", "\(relay.container.path)/sources/shop")
            #expect(shown.json.value(at: ["warnings"]) == warnings)
        }
    }

    @Test func `rows older than the relay's are reported`() async throws {
        let server = try PostgresServer.shared()
        let name = try server.database(Self.table)
        try await ServedRelay.with { relay in
            try await relay.container.set(source: "shop", Self.follow(server, name))
            _ = try await relay.source("shop", is: "following") {
                $0.value(at: ["following", "rows"]) == 2
            }
            // Posts a row with a high version, as a server would have sent it that was restored
            // since.
            try await relay.container.post(
                [
                    [
                        "operation": "update", "schema": "public", "table": "orders",
                        "key": ["id"], "after": ["id": 7, "status": "lost"],
                        "version": 9_000_000_000_000_000_000, "position": "1/FF/1/0",
                    ]
                ], to: "shop")
            try server.sql("UPDATE orders SET status = 'late' WHERE id = 7", in: name)
            let shown = try await relay.source("shop", is: "lagging")
            #expect(shown.value(at: ["following", "rowsOlder"]) == 1)
            #expect(shown.value(at: ["following", "verdict"]) == "waiting")
            let sentence = shown.value(at: ["following", "sentence"])?.text ?? ""
            #expect(sentence.contains("Rows fired nothing, because"), "\(sentence)")
        }
    }

    @Test func `a relay ends although the server that it connects to is silent`() async throws {
        let server = try LoopbackSocket()
        server.listenSilently()
        try await ServedRelay.with { relay in
            try await relay.container.set(
                source: "shop",
                [
                    "preset": "postgres",
                    "follow": [
                        "url": .string(
                            "host=127.0.0.1 port=\(server.port) dbname=x connect_timeout=60")
                    ],
                ])
            _ = try await relay.source("shop", is: "connecting")
        }
    }

    @Test func `a definition that cannot be followed is refused when it is saved`() async throws {
        try await ServedRelay.with { relay in
            for (follow, words) in [
                (["url": "postgresql://me:hidden@db/shop"], "follow.url: The URL of the database"),
                (["url": "postgresql://me:hidden%zz@db/shop"], "token: \\\"…\\\""),
                (["url": "postgresql://me:x/hidden@db/shop"], "%40 and %2F"),
                (["url": "postgresql://db/shop", "slot": "Shop"], "follow.slot: 1 to 63 of"),
                (["url": "postgresql://db/shop", "outbox": true, "make": true], "follow.tables: "),
                (["url": "postgresql://db/shop", "password": "x"], "follow.password"),
                ([:], "follow.url"),
            ] as [(JSONObject, String)] {
                let answer = try await relay.client.administer(
                    "PUT", "\(relay.container.path)/sources/shop",
                    ["preset": "postgres", "follow": .object(follow)])
                #expect(answer.status == 400 && answer.text.contains(words), "\(answer.text)")
                #expect(!answer.text.contains("hidden"))
            }
            let other = try await relay.client.administer(
                "PUT", "\(relay.container.path)/sources/shop",
                ["preset": "belfry", "follow": ["url": "postgresql://db/shop"]])
            #expect(other.text.contains("is allowed with the preset postgres only"))
        }
    }
}
