import RelayModel
import RelayTestKit
import Testing

/// Who counts as the creator of a record that comes from a database, and who may read private
/// records.
@Suite(.serialized, .timeLimit(.minutes(30))) struct KnownCreatorTests {
    private static func furnish(_ relay: RunningRelay, reading role: String) async throws {
        let schema: JSONValue = [
            "recordTypes": [
                [
                    "name": "Artwork", "shadow": true,
                    "grants": [
                        ["permission": "READ", "role": .string(role)],
                        ["permission": "CREATE", "role": "_icloud"],
                        ["permission": "WRITE", "role": "_creator"],
                    ],
                    "fields": [["name": "secret", "type": "STRING", "queryable": true]],
                ]
            ]
        ]
        try await relay.client.administer("PUT", relay.container.path + "/schema", schema)
            .expect(200)
    }

    /// Returns alice's answer to an operation on a record.
    private static func write(
        _ operation: String, _ relay: RunningRelay
    ) async throws -> String {
        let record: JSONValue = [
            "recordName": "r", "recordType": "Artwork", "fields": ["secret": ["value": "mine"]],
        ]
        return try await relay.container.call(
            "records/modify",
            ["operations": [["operationType": .string(operation), "record": record]]],
            as: "alice", in: "public"
        ).expect(200).text
    }

    private static func posted(_ operation: String, adding members: JSONObject) -> JSONValue {
        var change: JSONObject = [
            "operation": .string(operation), "recordType": "Artwork", "recordName": "r",
            "after": ["secret": "x"],
        ]
        for member in members.members { change[member.name] = member.value }
        return .object(change)
    }

    /// The version of the record is written before the record itself is examined.
    @Test(arguments: [false, true])
    func `a database's creation with a version takes over a record from a client`(
        isNamed: Bool
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, reading: "_world")
            let made = try await Self.write("create", relay)
            #expect(!made.contains("serverErrorCode"), "\(made)")
            var members: JSONObject = ["version": 1]
            // A snapshot takes over only records that clients have created.
            if isNamed {
                members["origin"] = ["userRecordName": "bob"]
                members["snapshot"] = true
            }
            try await relay.container.post(Self.posted("create", adding: members))
            let forged = try await Self.write("forceUpdate", relay)
            #expect(forged.contains("ACCESS_DENIED"), "\(forged)")
        }
    }

    @Test func `a user who first changes an existing record is not its creator`() async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, reading: "_creator")
            for _ in 0..<2 {
                try await relay.container.post(
                    Self.posted("update", adding: ["origin": ["userRecordName": "alice"]]))
            }
            let found = try await relay.container.call(
                "records/lookup", ["records": [["recordName": "r"]]], as: "alice", in: "public"
            ).expect(200)
            #expect(found.text.contains("NOT_FOUND"), "\(found.text)")
            let forged = try await Self.write("forceUpdate", relay)
            #expect(forged.contains("ACCESS_DENIED"), "\(forged)")
        }
    }

    @Test func `readers apply in a private database too, for calls and pushes`() async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay, reading: "_world")
            let place: JSONObject = ["database": "private", "owner": "alice"]
            let calls: [(String, JSONValue)] = [
                ("records/lookup", ["records": [["recordName": "r"]]]),
                ("records/query", ["query": ["recordType": "Artwork"]]),
                ("records/changes", [:]),
            ]
            for (readers, sees) in [("bob", false), ("alice", true)] {
                var members = place
                members["readers"] = [.string(readers)]
                try await relay.container.post(Self.posted("update", adding: members))
                for (action, body) in calls {
                    let answer = try await relay.container.call(
                        action, body, as: "alice", in: "private"
                    ).expect(200)
                    #expect(
                        answer.text.contains(#""secret""#) == sees,
                        "\(action), read by \(readers): \(answer.text)")
                }
            }
        }
    }
}
