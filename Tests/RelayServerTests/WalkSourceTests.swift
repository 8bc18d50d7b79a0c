import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// What databases post, from their own format to a push.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WalkSourceTests {
    private static func json(_ text: String) throws -> JSONValue {
        try JSONValue(parsing: text)
    }

    private static let orders: JSONValue = [
        "subscriptionID": "orders", "subscriptionType": "query",
        "query": ["recordType": "Order", "predicate": #"status = "shipped""#],
        "firesOn": ["update", "delete"],
        "notificationInfo": ["alertBody": "Shipped", "desiredKeys": ["status", "placed_at"]],
    ]

    @Test func `Debezium's events fire, snapshots do not, and nameless records are parked`()
        async throws
    {
        let snapshot = try Self.json(
            #"{"before":null,"after":{"id":6,"status":"shipped"},"source":{"connector":"postgresql","name":"shop","snapshot":"last","schema":"public","table":"orders","lsn":90},"op":"r"}"#
        )
        let batch = try Self.json(
            #"""
            [{"before":{"id":7,"status":"paid"},"after":{"id":7,"status":"shipped",
              "placed_at":1700000000000000},"source":{"connector":"postgresql","name":"shop",
              "ts_ms":1700000000123,"schema":"public","table":"orders","txId":771,"lsn":120},
              "op":"u","ts_ms":1700000000456},
             {"before":{"id":8,"status":"shipped"},"after":null,"source":{"connector":"postgresql",
              "name":"shop","schema":"public","table":"orders","txId":772,"lsn":130},"op":"d"},
             {"source":{"connector":"postgresql","name":"shop","schema":"public",
              "table":"orders"},"op":"t"}]
            """#)
        try await RunningRelay.with { relay in
            try await relay.container.set(
                source: "shop",
                [
                    "preset": "debezium",
                    "mapping": [
                        "recordTypes": ["public.orders": "Order"],
                        "columns": ["placed_at": "microseconds"],
                    ],
                ])
            try await relay.container.save(Self.orders)
            try await relay.container.post(snapshot, to: "shop")
            let first = try await relay.container.post(batch, to: "shop")
            let again = try await relay.container.post(batch, to: "shop")
            #expect(first["results", "2", "status"] == "parked")
            #expect(again["results", "0", "status"] == "duplicate")
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals == [
                    "phone: qry orders deleted 8", "phone: qry orders updated 7",
                    "tablet: qry orders deleted 8", "tablet: qry orders updated 7",
                ])
            let update = try #require(
                relay.gateway.simulated.pushes.first { $0.line == arrivals[1] })
            #expect(
                update.json.value(at: ["ck", "qry", "af"])
                    == ["status": "shipped", "placed_at": 1_700_000_000_000])
            let parked = try await relay.client.administer(
                "GET", relay.container.path + "/changes/parked")
            #expect(
                parked["parked", "0", "reason"]
                    == "a truncation names no records, so it cannot be read as changes")
        }
    }

    @Test func `Supabase's rows fire, and the author is read from a column`()
        async throws
    {
        let update = try Self.json(
            #"{"type":"UPDATE","table":"orders","schema":"public","record":{"id":7,"status":"shipped","device":"phone"},"old_record":{"id":7,"status":"paid","device":"tablet"}}"#
        )
        let delete = try Self.json(
            #"{"type":"DELETE","table":"orders","schema":"public","record":null,"old_record":{"id":9,"status":"shipped"}}"#
        )
        try await RunningRelay.with { relay in
            try await relay.container.set(
                source: "supabase",
                [
                    "preset": "supabase",
                    "mapping": [
                        "recordTypes": ["orders": "Order"],
                        "origin": [
                            "device": [["header": "X-Origin-Device"], ["column": "device"]]
                        ],
                    ],
                ])
            try await relay.container.save(Self.orders)
            try await relay.container.post(update, to: "supabase")
            try await relay.container.post(
                delete, to: "supabase", headers: ["X-Origin-Device": "tablet"])
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["phone: qry orders deleted 9", "tablet: qry orders updated 7"])
        }
    }

    @Test func `a parked change fires when it is replayed under a better mapping`() async throws {
        let insert: JSONValue = [
            "type": "INSERT", "table": "orders", "schema": "public",
            "record": ["number": 7, "status": "shipped"],
        ]
        try await RunningRelay.with { relay in
            let container = relay.container
            let definition: JSONObject = [
                "preset": "supabase", "onUnmappable": "park",
                "mapping": ["recordTypes": ["orders": "Artwork"]],
            ]
            try await container.set(source: "supabase", definition)
            try await container.save(.query("q"))
            let parked = try await container.post(insert, to: "supabase")
            #expect(parked["results", "0", "status"] == "parked")
            var better = definition
            better["verification"] = ["scheme": "none"]
            better["mapping"] = ["recordTypes": ["orders": "Artwork"], "key": ["number"]]
            try await relay.client.administer(
                "PUT", container.path + "/sources/supabase", .object(better)
            ).expect(200)
            try await relay.client.administer("POST", container.path + "/changes/parked/1/replay")
                .expect(200)
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["phone: qry q created 7", "tablet: qry q created 7"])
            let left = try await relay.client.administer("GET", container.path + "/changes/parked")
            #expect(left["parked"] == [])
        }
    }
}
