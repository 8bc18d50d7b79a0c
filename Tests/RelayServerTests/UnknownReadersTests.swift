import RelayModel
import RelayTestKit
import Testing

/// A row that was sent in part does not become public because its column of readers was left out.
@Suite(.serialized, .timeLimit(.minutes(30))) struct UnknownReadersTests {
    private static let id: JSONObject = ["$oid": "65a000000000000000000001"]

    private static func event(_ number: Int, _ type: String, _ members: JSONObject) -> JSONValue {
        var event: JSONObject = [
            "_id": ["_data": .string("826\(number)")], "operationType": .string(type),
            "ns": ["db": "shop", "coll": "Artwork"], "documentKey": ["_id": .object(id)],
        ]
        for member in members.members { event[member.name] = member.value }
        return .object(event)
    }

    /// Creates a source whose rows have their readers in a column, and a subscription of each user.
    private static func furnish(
        _ relay: RunningRelay, isKept: Bool, in database: String = "public",
        adding members: JSONObject = [:]
    ) async throws {
        let path = relay.container.path
        try await relay.client.administer(
            "PUT", path + "/schema",
            [
                "recordTypes": [
                    [
                        "name": "Artwork", "shadow": .bool(isKept),
                        "grants": [["permission": "READ", "role": "_world"]],
                    ]
                ]
            ]
        ).expect(200)
        var mapping: JSONObject = ["readers": ["column": "shared"]]
        if database != "public" {
            mapping["database"] = ["constant": .string(database)]
            mapping["owner"] = ["constant": "bob"]
        }
        try await relay.client.administer(
            "PUT", path + "/sources/documents",
            [
                "preset": "mongodb", "verification": ["scheme": "none"],
                "mapping": .object(mapping),
            ]
        ).expect(201)
        for user in ["alice", "bob"] {
            try await relay.container.save(
                .query(
                    "q", "TRUEPREDICATE", firesOn: ["create", "update", "delete"],
                    info: ["desiredKeys": ["secret"], "alertBody": "x"], adding: members),
                as: user, in: database)
        }
    }

    private static func whole(_ number: Int, _ type: String, _ shared: JSONValue?) -> JSONValue {
        var document: JSONObject = ["_id": .object(id), "secret": .string("x\(number)")]
        document["shared"] = shared
        return event(number, type, ["fullDocument": .object(document)])
    }

    private static func part(_ number: Int) -> JSONValue {
        let fields: JSONObject = ["secret": .string("x\(number)")]
        return event(
            number, "update",
            ["updateDescription": ["updatedFields": .object(fields), "removedFields": []]])
    }

    @Test(arguments: [true, false])
    func `a part of a row is told to the readers of the kept record, or to nobody`(
        isKept: Bool
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, isKept: isKept)
            let events = [
                Self.whole(1, "insert", ["bob"]), Self.part(2), Self.event(3, "delete", [:]),
            ]
            for event in events { try await relay.container.post(event, to: "documents") }
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == (isKept ? 3 : 1), "\(arrivals)")
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
        }
    }

    @Test func `a record first seen by a part is hidden until its row says that it has no readers`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, isKept: true)
            for event in [Self.part(1), Self.part(2)] {
                try await relay.container.post(event, to: "documents")
            }
            #expect(try await relay.arrivals() == [])
            try await relay.container.post(Self.whole(3, "replace", .null), to: "documents")
            let devices = Set(try await relay.arrivals().map { $0.prefix { $0 != ":" } })
            #expect(devices.contains("bobs") && devices.count > 1, "\(devices)")
        }
    }

    @Test func `a list of readers that was sent holds for a row without one`() async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, isKept: true)
            let events = [
                Self.part(1), Self.whole(2, "replace", []), Self.whole(3, "replace", .null),
                Self.whole(4, "replace", [""]), Self.whole(5, "replace", nil),
            ]
            for event in events { try await relay.container.post(event, to: "documents") }
            #expect(try await relay.arrivals() == [])
        }
    }

    @Test func `a row that opens a record does not show it as it was before`() async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, isKept: true, adding: ["firesWhen": "stayed"])
            for event in [Self.part(1), Self.whole(2, "replace", .null)] {
                try await relay.container.post(event, to: "documents")
            }
            #expect(try await relay.arrivals() == [])
            try await relay.container.post(Self.part(3), to: "documents")
            #expect(try await !relay.arrivals().isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `a part of a row in a private database is told to its owner`(
        isKept: Bool
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, isKept: isKept, in: "private")
            try await relay.container.post(Self.part(1), to: "documents")
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == 1, "\(arrivals)")
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
        }
    }
}
