import RelayModel
import RelayTestKit
import Testing

/// Which record a forced deletion deletes, whatever type it names.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ForcedDeletionTests {
    private static func furnish(_ relay: RunningRelay) async throws {
        let types: [JSONValue] = ["Row", "Note"].map { name -> JSONValue in
            [
                "name": .string(name), "shadow": true,
                "grants": [
                    ["permission": "READ", "role": "_creator"],
                    ["permission": "CREATE", "role": "_icloud"],
                    ["permission": "WRITE", "role": "_icloud"],
                ],
                "fields": [["name": "title", "type": "STRING", "queryable": true]],
            ]
        }
        try await relay.client.administer(
            "PUT", relay.container.path + "/schema", ["recordTypes": .array(types)]
        ).expect(200)
    }

    private static func post(_ relay: RunningRelay) async throws {
        try await relay.container.post([
            "operation": "create", "recordType": "Row", "recordName": "r",
            "database": "private", "owner": "alice", "after": ["title": "x"],
        ])
    }

    /// Returns the answer to an operation on the record.
    private static func modify(
        _ operation: String, _ type: String, by user: String, in database: String,
        _ relay: RunningRelay
    ) async throws -> RelayClient.Reply {
        let record: JSONValue = [
            "recordName": "r", "recordType": .string(type), "fields": [:],
        ]
        return try await relay.container.call(
            "records/modify",
            ["operations": [["operationType": .string(operation), "record": record]]],
            as: user, in: database
        ).expect(200)
    }

    /// Returns the type of the record with that name, if alice has one.
    private static func found(
        in database: String, _ relay: RunningRelay
    ) async throws -> JSONValue? {
        try await relay.container.call(
            "records/lookup", ["records": [["recordName": "r"]]], as: "alice", in: database
        ).expect(200)["records", "0", "recordType"]
    }

    @Test func `a forced deletion with an unknown type deletes the database's record`() async throws
    {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay)
            try await Self.post(relay)
            let deleted = try await Self.modify(
                "forceDelete", "Forced - does not matter", by: "alice", in: "private", relay)
            #expect(deleted["records", "0", "deleted"] == true, "\(deleted.text)")
            let left = try await Self.found(in: "private", relay)
            #expect(left == nil)
        }
    }

    @Test func `a repeated forced deletion deletes no other record`() async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay)
            try await Self.post(relay)
            let made = try await Self.modify(
                "create", "Note", by: "alice", in: "private", relay)
            #expect(!made.text.contains("serverErrorCode"), "\(made.text)")
            for _ in 0..<2 {
                let deleted = try await Self.modify(
                    "forceDelete", "Row", by: "alice", in: "private", relay)
                #expect(deleted["records", "0", "deleted"] == true, "\(deleted.text)")
                let left = try await Self.found(in: "private", relay)
                #expect(left == "Note")
            }
        }
    }

    @Test func `a user who may write but not read a record deletes it by any type`() async throws {
        try await RunningRelay.with { relay in
            try await Self.furnish(relay)
            let made = try await Self.modify(
                "create", "Row", by: "alice", in: "public", relay)
            #expect(!made.text.contains("serverErrorCode"), "\(made.text)")
            let deleted = try await Self.modify(
                "forceDelete", "Note", by: "bob", in: "public", relay)
            #expect(deleted["records", "0", "deleted"] == true, "\(deleted.text)")
            let left = try await Self.found(in: "public", relay)
            #expect(left == nil)
        }
    }
}
