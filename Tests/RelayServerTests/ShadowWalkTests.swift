import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Changes made through the relay fire like those that a database posts.
///
/// Kept records complete images that a database does not send.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ShadowWalkTests {
    private static func modify(
        _ operation: String, _ name: String, _ fields: JSONObject = [:],
        adding members: JSONObject = [:]
    ) -> JSONValue {
        var record: JSONObject = ["recordName": .string(name), "recordType": "Artwork"]
        var typed = JSONObject()
        for field in fields.members { typed[field.name] = ["value": field.value] }
        record["fields"] = .object(typed)
        for member in members.members { record[member.name] = member.value }
        return ["operations": [["operationType": .string(operation), "record": .object(record)]]]
    }

    @Test func `a client's change fires, and its own device is left out`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", #"artist = "artist-1""#, firesOn: ["create", "update", "delete"]))
            for (operation, device) in [
                ("create", "phone"), ("forceUpdate", "tablet"), ("forceDelete", "phone"),
            ] {
                let reply = try await relay.container.call(
                    "records/modify",
                    Self.modify(
                        operation, "a1", operation == "forceDelete" ? [:] : ["artist": "artist-1"],
                        adding: ["modified": ["deviceID": .string(device)]]), as: "alice",
                    in: "public"
                ).expect(200)
                #expect(!reply.text.contains("serverErrorCode"), "\(reply.text)")
            }
            let arrivals = try await relay.arrivals()
            #expect(
                arrivals == [
                    "phone: qry q updated a1", "tablet: qry q created a1",
                    "tablet: qry q deleted a1",
                ])
        }
    }

    @Test func `a record sent back as it was fetched names no device`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", nil, firesOn: ["update"]))
            let made = try await relay.container.call(
                "records/modify",
                Self.modify(
                    "create", "a1", ["artist": "x"],
                    adding: ["modified": ["deviceID": "tablet"]]), as: "alice", in: "public")
            let modified = try #require(made["records", "0", "modified"])
            #expect(modified.value(at: ["deviceID"]) == "tablet")
            try await relay.container.call(
                "records/modify",
                Self.modify(
                    "forceUpdate", "a1", ["artist": "y"], adding: ["modified": modified]),
                as: "alice", in: "public"
            ).expect(200)
            #expect(
                try await relay.arrivals() == [
                    "phone: qry q updated a1", "tablet: qry q updated a1",
                ])
        }
    }

    @Test func `private changes reach their owner, and zone subscriptions their zone`()
        async throws
    {
        try await RunningRelay.with { relay in
            let zones: JSONValue = [
                "operations": [
                    ["operationType": "create", "zone": ["zoneID": ["zoneName": "notes"]]]
                ]
            ]
            for user in ["alice", "bob"] {
                try await relay.container.call("zones/modify", zones, as: user, in: "private")
                    .expect(200)
                try await relay.container.save(
                    [
                        "subscriptionID": "z", "subscriptionType": "zone",
                        "zoneID": ["zoneName": "notes", "ownerRecordName": .string(user)],
                    ], as: user, in: "private")
            }
            var body = try #require(Self.modify("create", "n1").object)
            body["zoneID"] = ["zoneName": "notes", "ownerRecordName": "alice"]
            try await relay.container.call(
                "records/modify", .object(body), as: "alice", in: "private"
            ).expect(200)
            #expect(
                try await relay.arrivals() == ["phone: fet z", "tablet: fet z"])
        }
    }

    @Test func `a kept record replaces a missing image, and stale changes do not update it`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Artwork", ["shadow": true]
            ).expect(200)
            try await relay.container.save(
                .query(
                    "d", #"artist = "artist-1""#, firesOn: ["delete"],
                    info: ["alertBody": "Gone", "additionalFields": ["title"]]))
            // The fields that a partial image lacks are known from the kept record.
            for change: JSONValue in [
                .change(
                    "create", "a1", ["artist": "artist-1", "title": "One"],
                    adding: ["snapshot": true, "version": 1]),
                [
                    "operation": "update", "recordType": "Artwork", "recordName": "a1",
                    "after": ["title": "Two"], "afterCompleteness": "partial", "version": 3,
                ],
                .change("update", "a1", ["artist": "artist-2"], adding: ["version": 2]),
            ] {
                try await relay.container.post(change)
            }
            let found = try await relay.container.call(
                "records/lookup", ["records": ["a1"]], as: "alice", in: "public")
            #expect(found["records", "0", "fields", "artist", "value"] == "artist-1", "\(found)")
            #expect(found["records", "0", "fields", "title", "value"] == "Two")
            try await relay.container.post([
                "operation": "delete", "recordType": "Artwork", "recordName": "a1",
            ])
            #expect(
                try await relay.arrivals() == [
                    "phone: qry d deleted a1", "tablet: qry d deleted a1",
                ])
        }
    }

    @Test func `a record that leaves a condition is recognised by the kept record`() async throws {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Artwork", ["shadow": true]
            ).expect(200)
            try await relay.container.save(
                .query(
                    "left", #"artist = "artist-1""#, firesOn: ["update"],
                    adding: ["firesWhen": "left"]))
            try await relay.container.post(.change("create", "a1"))
            try await relay.container.post(.change("update", "a1", ["artist": "artist-2"]))
            try await relay.container.post(.change("update", "a1", ["artist": "artist-3"]))
            #expect(
                try await relay.arrivals() == [
                    "phone: qry left updated a1", "tablet: qry left updated a1",
                ])
        }
    }

    @Test func `what one client saves is found by another`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.call(
                "records/modify", Self.modify("create", "a1", ["artist": "x"]), as: "alice",
                in: "public"
            ).expect(200)
            let found = try await relay.container.call(
                "records/query", ["query": ["recordType": "Artwork"]], as: "bob", in: "public")
            #expect(found["records", "0", "recordName"] == "a1")
        }
    }
}

extension JSONValue {
    /// The object of this value, if it is one.
    var object: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }
}
