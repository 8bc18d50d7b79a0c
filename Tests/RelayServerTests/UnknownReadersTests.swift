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

    @Test(arguments: [true, false])
    func `a part of a row is told to the readers of the kept record, or to nobody`(
        isKept: Bool
    ) async throws {
        try await RunningRelay.with { relay in
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
            try await relay.client.administer(
                "PUT", path + "/sources/documents",
                [
                    "preset": "mongodb", "verification": ["scheme": "none"],
                    "mapping": ["readers": ["column": "shared"]],
                ]
            ).expect(201)
            for user in ["alice", "bob"] {
                try await relay.container.save(
                    .query(
                        "q", "TRUEPREDICATE", firesOn: ["create", "update", "delete"],
                        info: ["desiredKeys": ["secret"], "alertBody": "x"]), as: user)
            }
            let document: JSONObject = [
                "_id": .object(Self.id), "secret": "x1", "shared": ["bob"],
            ]
            let part: JSONObject = ["updatedFields": ["secret": "x2"], "removedFields": []]
            let events = [
                Self.event(1, "insert", ["fullDocument": .object(document)]),
                Self.event(2, "update", ["updateDescription": .object(part)]),
                Self.event(3, "delete", [:]),
            ]
            for event in events { try await relay.container.post(event, to: "documents") }
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == (isKept ? 3 : 1), "\(arrivals)")
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
        }
    }
}
