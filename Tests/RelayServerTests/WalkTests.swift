import RelayModel
import RelayTestKit
import Testing

/// When subscriptions fire, seen from outside: a webhook comes in, and pushes go out.
@Suite(.serialized, .timeLimit(.minutes(30))) struct WalkTests {
    /// Subscriptions, changes, and exactly the pushes that must follow.
    struct Walk: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// The subscriptions of alice in the public database.
        var subscriptions: [JSONValue]
        /// The changes, posted one by one.
        var changes: [JSONValue]
        /// The expected pushes, in alphabetical order.
        var arrivals: [String]

        init(
            _ description: String, _ subscriptions: [JSONValue], _ changes: [JSONValue],
            _ arrivals: [String]
        ) {
            testDescription = description
            self.subscriptions = subscriptions
            self.changes = changes
            self.arrivals = arrivals
        }

        func check() async throws {
            let walk = self
            try await RunningRelay.with { relay in
                for subscription in walk.subscriptions {
                    try await relay.container.save(subscription)
                }
                for change in walk.changes { try await relay.container.post(change) }
                let arrivals = try await relay.arrivals()
                #expect(arrivals == walk.arrivals)
            }
        }
    }

    private static let life: [JSONValue] = [
        .change("create", "a1"), .change("update", "a1"), .change("delete", "a1"),
    ]
    private static let byArtist = #"artist = "artist-1""#
    private static let byPhone: JSONObject = ["origin": ["deviceID": "phone"]]
    private static let byAlice: JSONObject = [
        "origin": ["deviceID": "phone", "userRecordName": "alice"]
    ]

    static let queries = [
        Walk(
            "a creation is told to all devices of the owner, and to nobody else",
            [.query("q", byArtist)], [life[0]],
            ["phone: qry q created a1", "tablet: qry q created a1"]
        ),
        Walk(
            "each operation fires those that ask for it",
            [
                .query("c", firesOn: ["create"], adding: ["suppress": "none"]),
                .query("d", firesOn: ["delete"], adding: ["suppress": "none"]),
                .query("u", firesOn: ["update"], adding: ["suppress": "none"]),
            ], life,
            [
                "phone: qry c created a1", "phone: qry d deleted a1", "phone: qry u updated a1",
                "tablet: qry c created a1", "tablet: qry d deleted a1", "tablet: qry u updated a1",
            ]),
        Walk(
            "one that asks for all three fires three times",
            [.query("q", byArtist, firesOn: ["create", "update", "delete"])], life,
            [
                "phone: qry q created a1", "phone: qry q deleted a1", "phone: qry q updated a1",
                "tablet: qry q created a1", "tablet: qry q deleted a1", "tablet: qry q updated a1",
            ]),
        Walk(
            "a condition that is false, or has no answer, does not fire",
            [.query("q", byArtist), .query("n", "NOT price > 3")],
            [.change("create", "a1", ["artist": "artist-2", "price": "dear"])], []),
        Walk(
            "an update is judged by what the record is now",
            [.query("q", byArtist, firesOn: ["update"])],
            [
                .change(
                    "update", "a1", ["artist": "artist-2"],
                    adding: ["before": ["artist": "artist-1"]]),
                .change(
                    "update", "a2", ["artist": "artist-1"],
                    adding: ["before": ["artist": "artist-2"]]),
            ], ["phone: qry q updated a2", "tablet: qry q updated a2"]),
        Walk(
            "another record type does not fire",
            [.query("q")], [.change("create", "a1", adding: ["recordType": "Artist"])], []),
        Walk(
            "a query subscription with a zone sees that zone only",
            [.query("q", adding: ["zoneID": ["zoneName": "gallery"]])],
            [life[0], .change("create", "a2", adding: ["zoneID": "gallery"])],
            ["phone: qry q created a2", "tablet: qry q created a2"]),
        Walk(
            "rows of a snapshot do not fire",
            [.query("q")], [.change("create", "a1", adding: ["snapshot": true])], []),
        Walk(
            "an older version of a record does not fire",
            [.query("q", firesOn: ["create", "update"])],
            [
                .change("create", "a1", adding: ["version": 1]),
                .change("update", "a1", adding: ["version": 3]),
                .change("update", "a1", adding: ["version": 2]),
            ],
            [
                "phone: qry q created a1", "phone: qry q updated a1", "tablet: qry q created a1",
                "tablet: qry q updated a1",
            ]),
    ]

    static let origins = [
        Walk(
            "the device that made the change gets nothing, deletions included",
            [.query("q", firesOn: ["create", "update", "delete"])],
            [
                .change("create", "a1", adding: byPhone), .change("update", "a1", adding: byPhone),
                .change("delete", "a1", adding: byPhone),
            ],
            ["tablet: qry q created a1", "tablet: qry q deleted a1", "tablet: qry q updated a1"]),
        Walk(
            "with an unknown device nobody is left out",
            [.query("q")], [.change("create", "a1", adding: ["origin": ["deviceID": "other"]])],
            ["phone: qry q created a1", "tablet: qry q created a1"]),
        Walk(
            "suppress: user leaves out all devices of the user who made the change",
            [.query("q", adding: ["suppress": "user"])],
            [.change("create", "a1", adding: byAlice), .change("create", "a2", adding: byPhone)],
            ["phone: qry q created a2", "tablet: qry q created a2"]),
        Walk(
            "suppress: none leaves out nobody",
            [.query("q", adding: ["suppress": "none"])], [.change("create", "a1", adding: byAlice)],
            ["phone: qry q created a1", "tablet: qry q created a1"]),
    ]

    static let zones = [
        Walk(
            "a zone subscription fires on everything in its zone",
            [
                [
                    "subscriptionID": "z", "subscriptionType": "zone",
                    "zoneID": ["zoneName": "gallery"], "notificationInfo": ["alertBody": "New"],
                ]
            ],
            [
                .change("create", "a1", adding: ["zoneID": "gallery"]),
                .change("delete", "x1", adding: ["zoneID": "gallery", "recordType": "Artist"]),
                .change("create", "a2"),
            ], ["phone: fet z", "phone: fet z", "tablet: fet z", "tablet: fet z"]),
        Walk(
            "a database subscription fires on everything in its database, or of one record type",
            [
                ["subscriptionID": "d", "subscriptionType": "zone", "zoneWide": true],
                [
                    "subscriptionID": "t", "subscriptionType": "database", "recordType": "Artist",
                    "notificationInfo": ["alertBody": "New"],
                ],
            ],
            [
                .change("create", "a1", adding: ["zoneID": "gallery"]),
                .change("create", "x1", adding: ["recordType": "Artist"]),
            ],
            [
                "phone: met d", "phone: met d", "phone: met t", "tablet: met d", "tablet: met d",
                "tablet: met t",
            ]),
    ]

    @Test(arguments: queries) func `a query subscription fires as expected`(
        walk: Walk
    ) async throws {
        try await walk.check()
    }

    @Test(arguments: origins) func `the device that made a change gets no push`(
        walk: Walk
    ) async throws {
        try await walk.check()
    }

    @Test(arguments: zones) func `zone and database subscriptions fire as expected`(
        walk: Walk
    ) async throws {
        try await walk.check()
    }
}
