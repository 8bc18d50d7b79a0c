import RelayModel
import RelayTestKit
import Testing

/// In the private database, zones are answered with the user's own name as their owner.
///
/// Clients send them back in that form: in references, in conditions and in what databases post.
@Suite(.serialized, .timeLimit(.minutes(30))) struct OwnZoneTests {
    /// The same zone, in the forms in which clients write it.
    private static let zones: [JSONValue] = [
        ["zoneName": "g"], "g", ["zoneName": "g", "ownerRecordName": "alice"],
        ["zoneName": "g", "ownerName": "alice"],
        ["zoneName": "g", "ownerRecordName": "_defaultOwner"],
    ]

    private static func reference(_ name: String, in zone: JSONValue) -> JSONValue {
        ["recordName": .string(name), "zoneID": zone]
    }

    private static func query(
        _ id: String, _ condition: JSONObject, firesOn: [JSONValue] = ["create"]
    ) -> JSONValue {
        var query = condition
        query["recordType"] = "Artwork"
        return [
            "subscriptionID": .string(id), "subscriptionType": "query", "query": .object(query),
            "firesOn": .array(firesOn), "suppress": "none",
            "notificationInfo": ["alertBody": "New"],
        ]
    }

    /// Returns every form in which a client may compare with a reference.
    private static func conditions(_ field: String, _ value: JSONValue) -> [JSONObject] {
        [
            ["predicate": .string("\(field) == %@"), "predicateArguments": [value]],
            ["predicate": .string("\(field) IN %@"), "predicateArguments": [[value]]],
            ["rql": .string("\(field) == $0"), "rqlArguments": [value]],
            [
                "filterBy": [
                    [
                        "fieldName": .string(field), "comparator": "EQUALS",
                        "fieldValue": ["value": value, "type": "REFERENCE"],
                    ]
                ]
            ],
        ]
    }

    private static func create(_ name: String, _ fields: JSONObject) -> JSONValue {
        [
            "zoneID": ["zoneName": "g"],
            "operations": [
                [
                    "operationType": "create",
                    "record": [
                        "recordType": "Artwork", "recordName": .string(name),
                        "fields": .object(fields),
                    ],
                ]
            ],
        ]
    }

    private static func withZone(
        _ body: @escaping @Sendable (RunningRelay) async throws -> Void
    ) async throws {
        try await RunningRelay.with { relay in
            try await relay.container.call(
                "zones/modify",
                [
                    "operations": [
                        ["operationType": "create", "zone": ["zoneID": ["zoneName": "g"]]]
                    ]
                ], as: "alice", in: "private"
            ).expect(200)
            try await body(relay)
        }
    }

    private static func found(
        _ relay: RunningRelay, _ condition: JSONObject
    ) async throws -> [JSONValue?] {
        var query = condition
        query["recordType"] = "Artwork"
        let reply = try await relay.container.call(
            "records/query", ["query": .object(query), "zoneID": ["zoneName": "g"]],
            as: "alice", in: "private"
        ).expect(200)
        guard case .array(let records)? = reply["records"] else { return [] }
        return records.map { $0.value(at: ["recordName"]) }
    }

    @Test func `a record ID as it was answered finds the record and fires`() async throws {
        try await Self.withZone { relay in
            let made = try await relay.container.call(
                "records/modify", Self.create("album", [:]), as: "alice", in: "private")
            let answered = try #require(made["records", "0", "zoneID"])
            #expect(answered.value(at: ["ownerRecordName"]) == "alice")
            var wanted: [String] = []
            for zone in Self.zones + [answered] {
                for condition in Self.conditions("recordID", Self.reference("album", in: zone)) {
                    let found = try await Self.found(relay, condition)
                    #expect(found == ["album"], "\(condition)")
                }
            }
            // An equal condition would be a duplicate, but each of these forms is a different
            // condition.
            for (index, condition) in Self.conditions(
                "___recordID", Self.reference("later", in: answered)
            ).enumerated() {
                try await relay.container.save(
                    Self.query(
                        "q\(index)", condition,
                        firesOn: index == 3 ? ["create", "update"] : ["create"]
                    ), in: "private")
                wanted += [
                    "phone: qry q\(index) created later", "tablet: qry q\(index) created later",
                ]
            }
            try await relay.container.call(
                "records/modify", Self.create("later", [:]), as: "alice", in: "private"
            ).expect(200)
            #expect(try await relay.arrivals() == wanted.sorted())
        }
    }

    @Test func `a reference is the same however its zone is written`()
        async throws
    {
        try await Self.withZone { relay in
            for (index, zone) in Self.zones.enumerated() {
                let value = Self.reference("leo", in: zone)
                let made = try await relay.container.call(
                    "records/modify",
                    Self.create("r\(index)", ["artist": ["value": value, "type": "REFERENCE"]]),
                    as: "alice", in: "private")
                #expect(!made.text.contains("serverErrorCode"), "\(made.text)")
            }
            for zone in Self.zones {
                for condition in Self.conditions("artist", Self.reference("leo", in: zone)) {
                    let found = try await Self.found(relay, condition)
                    #expect(found == ["r0", "r1", "r2", "r3", "r4"], "\(condition)")
                }
            }
            let other = try await Self.found(
                relay, Self.conditions("artist", ["recordName": "leo"])[0])
            #expect(other == [], "without a zone the default one is meant")
        }
    }

    @Test func `a database's change of a private zone is in the same zone`() async throws {
        try await Self.withZone { relay in
            try await relay.container.save(
                Self.query(
                    "artist",
                    Self.conditions("artist", Self.reference("leo", in: ["zoneName": "g"]))[0]),
                Self.query(
                    "id",
                    [
                        "predicate": "recordID IN %@",
                        "predicateArguments": [
                            .array(
                                (0..<5).map {
                                    Self.reference("p\($0)", in: ["zoneName": "g"])
                                })
                        ],
                    ]), in: "private")
            var wanted: [String] = []
            for (index, zone) in Self.zones.enumerated() {
                try await relay.container.post(
                    .change(
                        "create", "p\(index)",
                        [
                            "artist": [
                                "value": Self.reference("leo", in: zone), "type": "REFERENCE",
                            ]
                        ],
                        adding: ["database": "private", "owner": "alice", "zoneID": zone]))
                for id in ["artist", "id"] {
                    for device in ["phone", "tablet"] {
                        wanted.append("\(device): qry \(id) created p\(index)")
                    }
                }
            }
            #expect(try await relay.arrivals() == wanted.sorted())
        }
    }

    @Test func `a validated reference may have the zone as it was answered`()
        async throws
    {
        try await Self.withZone { relay in
            let made = try await relay.container.call(
                "records/modify", Self.create("parent", [:]), as: "alice", in: "private")
            let zone = try #require(made["records", "0", "zoneID"])
            let child = try await relay.container.call(
                "records/modify",
                Self.create(
                    "child",
                    [
                        "parent": [
                            "value": ["recordName": "parent", "zoneID": zone, "action": "VALIDATE"]
                        ]
                    ]), as: "alice", in: "private")
            #expect(!child.text.contains("serverErrorCode"), "\(child.text)")
        }
    }

    /// Some clients fail at a zone without an owner, and some at a reference without a zone.
    @Test func `the zone of a reference is answered with its owner`() async throws {
        try await Self.withZone { relay in
            let whole: JSONValue = [
                "zoneName": "g", "ownerRecordName": "alice", "zoneType": "REGULAR_CUSTOM_ZONE",
            ]
            let elsewhere: JSONValue = [
                "zoneName": "_defaultZone", "ownerRecordName": "alice", "zoneType": "DEFAULT_ZONE",
            ]
            let read: JSONValue = ["recordName": "x", "zoneID": whole, "action": "NONE"]
            for (index, zone) in (Self.zones + [whole]).enumerated() {
                let made = try await relay.container.call(
                    "records/modify",
                    Self.create(
                        "r\(index)",
                        [
                            "one": ["value": Self.reference("x", in: zone)],
                            "many": ["value": [Self.reference("x", in: zone)]],
                            "bare": ["value": ["recordName": "x"]],
                            "bound": ["value": ["recordName": "x", "action": "DELETE_SELF"]],
                        ]), as: "alice", in: "private")
                let fields = try #require(made["records", "0", "fields"], "\(made.text)")
                #expect(fields.value(at: ["one", "value"]) == read, "\(made.text)")
                #expect(fields.value(at: ["many", "value"]) == [read], "\(made.text)")
                #expect(
                    fields.value(at: ["bare", "value", "zoneID"]) == elsewhere, "\(made.text)")
                // Without a zone it means the record's own zone, while a condition would mean the
                // default zone.
                #expect(
                    fields.value(at: ["bound", "value"])
                        == ["recordName": "x", "action": "DELETE_SELF"], "\(made.text)")
            }
        }
    }

    @Test func `a user is the same whatever owner the zone of users is given`() async throws {
        try await Self.withZone { relay in
            try await relay.container.call(
                "records/modify", Self.create("mine", [:]), as: "alice", in: "private"
            ).expect(200)
            for owner in ["alice", "_defaultOwner"] {
                for field in ["___createdBy", "createdUserRecordName"] {
                    let user = Self.reference(
                        "alice",
                        in: ["zoneName": "_defaultZone", "ownerRecordName": .string(owner)])
                    for condition in Self.conditions(field, user) {
                        let found = try await Self.found(relay, condition)
                        #expect(found == ["mine"], "\(condition)")
                    }
                }
            }
        }
    }
}
