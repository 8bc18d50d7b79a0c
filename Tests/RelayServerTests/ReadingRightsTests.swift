import RelayModel
import RelayTestKit
import Testing

/// Only users who may read a record are told of it: the rules for record calls hold for pushes.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ReadingRightsTests {
    private static let everything: [String] = ["create", "update", "delete"]
    /// A notification that shows a record's fields in every possible place.
    private static let curious: JSONObject = [
        "alertLocalizationKey": "%1$@", "alertLocalizationArgs": ["secret"],
        "titleLocalizationKey": "%1$@", "titleLocalizationArgs": ["secret"],
        "subtitleLocalizationKey": "%1$@", "subtitleLocalizationArgs": ["secret"],
        "desiredKeys": ["secret"],
    ]

    private static func schema(reading role: String?) -> JSONValue {
        var grants: [JSONValue] = [
            ["permission": "CREATE", "role": "_icloud"],
            ["permission": "WRITE", "role": "_creator"],
        ]
        if let role { grants.append(["permission": "READ", "role": .string(role)]) }
        return [
            "recordTypes": [
                [
                    "name": "Artwork", "shadow": true, "grants": .array(grants),
                    "fields": [["name": "secret", "type": "STRING", "queryable": true]],
                ]
            ]
        ]
    }

    private static func set(_ schema: JSONValue, _ relay: RunningRelay) async throws {
        try await relay.client.administer("PUT", relay.container.path + "/schema", schema)
            .expect(200)
    }

    private static func subscribe(_ relay: RunningRelay) async throws {
        for user in ["alice", "bob"] {
            try await relay.container.save(
                .query("q", #"secret BEGINSWITH "x""#, firesOn: everything, info: curious),
                as: user)
            try await relay.container.save(
                [
                    "subscriptionID": "z", "subscriptionType": "zone",
                    "zoneID": ["zoneName": "_defaultZone"],
                    "notificationInfo": ["alertBody": "New"],
                ], as: user)
        }
    }

    private static func modify(_ operation: String, _ value: String?) -> JSONValue {
        var record: JSONObject = ["recordName": "r", "recordType": "Artwork"]
        if let value { record["fields"] = ["secret": ["value": .string(value)]] }
        return ["operations": [["operationType": .string(operation), "record": .object(record)]]]
    }

    /// Writes a record as bob, changes it and deletes it.
    private static func write(_ relay: RunningRelay) async throws {
        for (operation, value) in [("create", "x1"), ("forceUpdate", "x2"), ("forceDelete", nil)] {
            let reply = try await relay.container.call(
                "records/modify", modify(operation, value), as: "bob", in: "public"
            ).expect(200)
            #expect(!reply.text.contains("serverErrorCode"), "\(reply.text)")
        }
    }

    @Test func `a record that only its creator may read is only pushed to the creator`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: "_creator"), relay)
            try await Self.subscribe(relay)
            try await Self.write(relay)
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == 6)
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
        }
    }

    @Test(arguments: ["_icloud", "_world"])
    func `a record that every user may read is pushed to every user`(role: String) async throws {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: role), relay)
            try await Self.subscribe(relay)
            try await Self.write(relay)
            #expect(try await relay.arrivals().count == 18)
        }
    }

    @Test func `a record that nobody may read is pushed to nobody even from a database`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: nil), relay)
            try await Self.subscribe(relay)
            try await Self.write(relay)
            for operation in Self.everything {
                try await relay.container.post(.change(operation, "w", ["secret": "x"]))
            }
            #expect(try await relay.arrivals() == [])
            // A record that names its readers can be read by them, as in queries.
            try await relay.container.post(
                .change("create", "n", ["secret": "x"], adding: ["readers": ["bob"]]))
            #expect(try await relay.arrivals() == ["bobs: fet z", "bobs: qry q created n"])
        }
    }

    @Test func `the readers of a kept record hold until a change names others`() async throws {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: "_world"), relay)
            try await Self.subscribe(relay)
            func post(_ operation: String, _ members: JSONObject = [:]) async throws {
                var change: JSONObject = [
                    "operation": .string(operation), "recordType": "Artwork", "recordName": "r",
                ]
                for member in members.members { change[member.name] = member.value }
                try await relay.container.post(.object(change))
            }
            try await post("create", ["after": ["secret": "x1"], "readers": ["bob"]])
            try await post("update", ["after": ["other": 1], "afterCompleteness": "partial"])
            try await post("update", ["after": ["secret": "x2"]])
            try await post("delete")
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == 8)
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
            for user in ["alice", "bob"] {
                let changes = try await relay.container.call(
                    "records/changes", [:], as: user, in: "public")
                #expect(changes.text.contains(#""deleted":true"#) == (user == "bob"))
            }
        }
    }

    /// The readers come from the change, or from the grants of the schema.
    @Test(arguments: ["_world", "_creator"])
    func `a user who is admitted by a change learns nothing of the former record`(
        role: String
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: role), relay)
            for user in ["alice", "bob"] {
                for rule in ["entered", "left", "stayed"] {
                    try await relay.container.save(
                        .query(
                            rule, #"secret BEGINSWITH "x""#, firesOn: ["update"],
                            adding: ["firesWhen": .string(rule)]), as: user)
                }
            }
            let readers: JSONObject =
                role == "_world"
                ? ["readers": ["bob"]] : ["origin": ["userRecordName": "bob"]]
            try await relay.container.post(
                .change("create", "r", ["secret": "x1"], adding: readers))
            try await relay.container.post(
                .change("update", "r", ["secret": "y1"], adding: ["readers": ["world"]]))
            #expect(try await relay.arrivals() == ["bobs: qry left updated r"])
        }
    }

    @Test(arguments: ["_world", "_creator"])
    func `a deletion that names new readers shows them nothing of the hidden record`(
        role: String
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: role), relay)
            for user in ["alice", "bob"] {
                try await relay.container.save(
                    .query(
                        "q", #"secret BEGINSWITH "x""#, firesOn: ["delete"], info: Self.curious),
                    as: user)
            }
            let readers: JSONObject =
                role == "_world"
                ? ["readers": ["bob"]] : ["origin": ["userRecordName": "bob"]]
            for (name, others) in [("a", "world"), ("b", "alice"), ("c", "bob")] {
                try await relay.container.post(
                    .change("create", name, ["secret": "x1"], adding: readers))
                try await relay.container.post([
                    "operation": "delete", "recordType": "Artwork", "recordName": .string(name),
                    "readers": [.string(others)],
                ])
            }
            let arrivals = try await relay.arrivals().sorted()
            #expect(arrivals == ["bobs: qry q deleted a", "bobs: qry q deleted c"])
        }
    }

    @Test func `a user who took a record's name before its database cannot read the record`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: "_creator"), relay)
            try await relay.container.call(
                "records/modify", Self.modify("create", "a"), as: "alice", in: "public"
            ).expect(200)
            try await Self.subscribe(relay)
            try await relay.container.post(
                .change(
                    "create", "r", ["secret": "x1"], adding: ["origin": ["userRecordName": "bob"]]))
            let arrivals = try await relay.arrivals()
            #expect(arrivals.count == 2)
            #expect(arrivals.allSatisfy { $0.hasPrefix("bobs: ") }, "\(arrivals)")
            for (user, sees) in [("alice", false), ("bob", true)] {
                let reply = try await relay.container.call(
                    "records/lookup", ["records": [["recordName": "r"]]], as: user, in: "public"
                ).expect(200)
                #expect(reply.text.contains("x1") == sees, "\(user): \(reply.text)")
                #expect(!reply.text.contains(#""userRecordName":"alice""#), "\(reply.text)")
            }
        }
    }

    @Test func `what a client wrote besides values does not apply to the database's record`()
        async throws
    {
        let reference: JSONObject = ["recordName": "x", "action": "DELETE_SELF"]
        try await RunningRelay.with { relay in
            func write(_ operation: String, _ record: JSONObject) async throws {
                let operations: JSONValue = [
                    ["operationType": .string(operation), "record": .object(record)]
                ]
                try await relay.container.call(
                    "records/modify", ["operations": operations], as: "alice", in: "public"
                ).expect(200)
            }
            try await Self.set(Self.schema(reading: "_world"), relay)
            let target: JSONObject = ["recordName": "x", "recordType": "Artwork"]
            try await write("create", target)
            try await write(
                "create",
                [
                    "recordName": "r", "recordType": "Artwork",
                    "fields": ["link": ["value": .object(reference), "type": "REFERENCE"]],
                ])
            try await relay.container.post(
                .change(
                    "create", "r", ["link": ["type": "REFERENCE", "value": ["recordName": "x"]]]))
            try await write("forceDelete", target)
            let reply = try await relay.container.call(
                "records/lookup", ["records": [["recordName": "r"]]], as: "bob", in: "public"
            ).expect(200)
            #expect(!reply.text.contains("serverErrorCode"), "\(reply.text)")
        }
    }

    /// If its source names no creator, the record has none.
    ///
    /// A repeated snapshot does not take the record from a creator it already has.
    @Test(arguments: ["alice", "bob"])
    func `a user who took a record's name before its database cannot write the record`(
        user: String
    ) async throws {
        try await RunningRelay.with { relay in
            try await Self.set(Self.schema(reading: "_world"), relay)
            if user == "alice" {
                try await relay.container.call(
                    "records/modify", Self.modify("create", "a"), as: user, in: "public"
                ).expect(200)
                try await relay.container.post(.change("create", "r", ["secret": "x1"]))
            } else {
                try await relay.container.post(
                    .change(
                        "create", "r", ["secret": "x0"],
                        adding: ["origin": ["userRecordName": "bob"]]))
                try await relay.container.post(
                    .change("create", "r", ["secret": "x1"], adding: ["snapshot": true]))
            }
            let reply = try await relay.container.call(
                "records/modify", Self.modify("forceUpdate", "forged"), as: user, in: "public"
            ).expect(200)
            #expect(
                reply.text.contains("ACCESS_DENIED") == (user == "alice"),
                "\(user): \(reply.text)")
        }
    }
}

/// What belongs to one user, and not to another.
@Suite(.serialized, .timeLimit(.minutes(30))) struct OwnDeviceTests {
    @Test func `a record of the same name gives no right to delete referring records`()
        async throws
    {
        let grants: JSONValue = [
            ["permission": "READ", "role": "_world"], ["permission": "CREATE", "role": "_icloud"],
            ["permission": "WRITE", "role": "_creator"],
        ]
        let album: JSONObject = ["value": ["recordName": "album", "action": "DELETE_SELF"]]
        try await RunningRelay.with { relay in
            func modify(_ user: String, _ operation: String, _ record: JSONObject) async throws {
                let reply = try await relay.container.call(
                    "records/modify",
                    [
                        "operations": [
                            ["operationType": .string(operation), "record": .object(record)]
                        ]
                    ], as: user, in: "public"
                ).expect(200)
                #expect(!reply.text.contains("serverErrorCode"), "\(reply.text)")
            }
            try await relay.client.administer(
                "PUT", relay.container.path + "/schema",
                [
                    "recordTypes": [
                        [
                            "name": "Artwork", "shadow": true,
                            "grants": [["permission": "READ", "role": "_world"]],
                        ],
                        [
                            "name": "Photo", "shadow": true, "grants": grants,
                            "fields": [["name": "album", "type": "REFERENCE"]],
                        ],
                        ["name": "Note", "shadow": true, "grants": grants],
                    ]
                ]
            ).expect(200)
            try await relay.container.post(.change("create", "album"))
            try await modify(
                "bob", "create",
                [
                    "recordName": "p", "recordType": "Photo",
                    "fields": ["album": .object(album)],
                ])
            func look(for name: String, as user: String) async throws -> String {
                try await relay.container.call(
                    "records/lookup", ["records": [["recordName": .string(name)]]], as: user,
                    in: "public"
                ).expect(200).text
            }
            let note: JSONObject = ["recordName": "album", "recordType": "Note"]
            try await modify("alice", "create", note)
            // Nor is this record taken for the database's: the creator decides which one is meant.
            for (user, type) in [("bob", "Artwork"), ("alice", "Note")] {
                let found = try await look(for: "album", as: user)
                #expect(found.contains(#""recordType":"\#(type)""#), "\(user): \(found)")
            }
            try await modify("alice", "forceDelete", note)
            let photo = try await look(for: "p", as: "bob")
            #expect(!photo.contains("serverErrorCode"), "\(photo)")
        }
    }

    @Test func `a user cannot end another user's device by taking its ID`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            try await relay.container.call(
                "tokens/register",
                [
                    "apnsEnvironment": "development", "deviceID": "phone",
                    "apnsToken": .string(String(repeating: "ab", count: 32)),
                ], as: "bob", in: nil
            ).expect(200)
            try await relay.container.post(.change("create", "a1"))
            #expect(
                try await relay.arrivals() == [
                    "phone: qry q created a1", "tablet: qry q created a1",
                ])
            let path = relay.container.path + "/devices/phone"
            let refused = try await relay.client.administer("DELETE", path)
            #expect(refused.status == 400)
            #expect(
                refused["reason"]
                    == #"user: several users have a device "phone"; name the user"#)
            try await relay.client.administer("DELETE", path + "?user=bob").expect(200)
            let alone = try await relay.client.administer("DELETE", path).expect(200)
            #expect(alone["userRecordName"] == "alice")
        }
    }

    @Test func `a user cannot hide a change from another user's device by naming it as origin`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            for (name, members) in [
                ("a1", ["modified": ["deviceID": "phone"]]), ("a2", [:]),
            ] as [(String, JSONObject)] {
                var record: JSONObject = [
                    "recordName": .string(name), "recordType": "Artwork",
                    "fields": ["artist": ["value": "artist-1"]],
                ]
                for member in members.members { record[member.name] = member.value }
                try await relay.container.call(
                    "records/modify",
                    [
                        "clientId": "phone",
                        "operations": [
                            ["operationType": "create", "record": .object(record)]
                        ],
                    ], as: "bob", in: "public"
                ).expect(200)
            }
            #expect(
                try await relay.arrivals() == [
                    "phone: qry q created a1", "phone: qry q created a2",
                    "tablet: qry q created a1", "tablet: qry q created a2",
                ])
        }
    }
}
