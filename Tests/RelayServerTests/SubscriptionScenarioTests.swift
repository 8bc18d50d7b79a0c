import HTTPTypes
import RelayModel
import RelayServer
import Storage
import Testing

/// Saving, listing and looking up subscriptions.
@Suite struct SubscriptionScenarioTests {
    private static let zone =
        #"{"subscriptionID":"z1","subscriptionType":"zone","zoneID":{"zoneName":"notes"},"no"#
        + #"tificationInfo":{"shouldSendContentAvailable":true}}"#

    static func create(_ subscription: String) -> String {
        #"{"operations":[{"operationType":"create","subscription":\#(subscription)}]}"#
    }

    static func query(
        _ id: String, type: String = "Artwork", firesOn: String = #"["create"]"#,
        info: String = #"{"alertBody":"new"}"#
    ) -> String {
        #"{"subscriptionID":"\#(id)","subscriptionType":"query","query":{"recordType":""#
            + #"\#(type)"},"firesOn":\#(firesOn),"notificationInfo":\#(info)}"#
    }

    private func entries(_ answer: TestRelay.Answer) -> [JSONValue] {
        if case .array(let entries)? = answer["subscriptions"] { entries } else { [] }
    }

    private func member(_ entry: JSONValue?, _ name: String) -> JSONValue? {
        if case .object(let object)? = entry { object[name] } else { nil }
    }

    // MARK: What could never be sent

    @Test(arguments: [
        " art", "art ", " ", "", "a\\nb", String(repeating: "x", count: 65), "x\u{85}y", "x\u{A0}",
        "\u{3000}x", "x\u{2028}", "x\u{2028}y", "x\u{200B}", "\u{FEFF}x", "x\u{9F}",
    ])
    func `a collapse ID that the gateway would refuse is refused`(key: String) async throws {
        try await TestRelay.with { relay in
            let refused = try await relay.post(
                "subscriptions/modify",
                Self.create(
                    Self.query("q", info: #"{"alertBody":"new","collapseIDKey":"\#(key)"}"#)))
            let reason = member(entries(refused).first, "reason")?.text ?? refused.text
            #expect(
                reason.contains(
                    "operations[0].subscription.notificationInfo.collapseIDKey: must be 1 to 64"))
            let saved = try await relay.post(
                "subscriptions/modify",
                Self.create(Self.query("q", info: #"{"collapseIDKey":"a b"}"#)))
            #expect(member(entries(saved).first, "activationPosition") != nil, "\(saved.text)")
        }
    }

    @Test func `blanks and joiners inside a collapse ID are allowed`() async throws {
        try await TestRelay.with { relay in
            for (index, key) in ["a b", "a\u{A0}b", "👩‍👧", "é"].enumerated() {
                let saved = try await relay.post(
                    "subscriptions/modify",
                    Self.create(
                        Self.query(
                            "q\(index)", type: "T\(index)",
                            info: #"{"collapseIDKey":"\#(key)"}"#)))
                #expect(member(entries(saved).first, "activationPosition") != nil, "\(saved.text)")
            }
        }
    }

    @Test(arguments: [
        "alertBody", "alertLocalizationKey", "title", "titleLocalizationKey", "subtitle",
        "subtitleLocalizationKey", "soundName",
    ])
    func `an empty text counts as absent`(name: String) async throws {
        try await TestRelay.with { relay in
            let saved = try await relay.post(
                "subscriptions/modify",
                Self.create(Self.query("q", info: #"{"\#(name)":"","category":""}"#)))
            #expect(
                member(entries(saved).first, "notificationInfo")
                    == ["shouldSendContentAvailable": true], "\(saved.text)")
            let urgent = try await relay.post(
                "subscriptions/modify",
                Self.create(Self.query("r", info: #"{"\#(name)":"","priority":10}"#)))
            #expect(
                member(entries(urgent).first, "reason")?.text.contains(
                    "notificationInfo.priority: 10 needs an alert") == true, "\(urgent.text)")
        }
    }

    // MARK: What is kept

    @Test func `a selection of updates is kept, and refused where there are none`() async throws {
        @Sendable func choice(_ members: String, firesOn: String = #"["update"]"#) -> String {
            Self.create(
                #"{"subscriptionID":"u1","subscriptionType":"query","query":{"recordType":"Artwork"}"#
                    + #","firesOn":\#(firesOn),\#(members)}"#)
        }
        try await TestRelay.with { relay in
            let saved = try await relay.post(
                "subscriptions/modify", choice(#""firesWhen":"left","changedKeys":["price"]"#))
            #expect(member(entries(saved).first, "firesWhen") == "left", "\(saved.text)")
            #expect(member(entries(saved).first, "changedKeys") == ["price"])
            let path = "operations[0].subscription."
            for (body, reason) in [
                (
                    choice(#""firesWhen":"came""#),
                    path + "firesWhen: \"came\" is unknown; allowed are \"matches\", "
                        + "\"entered\", \"left\", \"stayed\""
                ),
                (
                    choice(#""firesWhen":"left""#, firesOn: #"["create"]"#),
                    path + "firesWhen: selects among updates: it is allowed only in a query "
                        + "subscription with \"update\" in firesOn"
                ),
                (
                    choice(#""changedKeys":[""]"#), path + "changedKeys[0]: not a field name"
                ),
            ] {
                let answer = try await relay.post("subscriptions/modify", body)
                #expect(member(entries(answer).first, "reason") == .string(reason))
            }
        }
    }

    @Test func `all three types are saved, listed, looked up and deleted`() async throws {
        try await TestRelay.with { relay in
            let database = #"{"subscriptionID":"d1","subscriptionType":"zone","zoneWide":true}"#
            for body in [
                Self.create(Self.query("q1")), Self.create(Self.zone), Self.create(database),
            ] {
                let saved = try await relay.post("subscriptions/modify", body)
                #expect(saved.status == 200, "\(saved.text)")
                let entry = entries(saved).first
                #expect(member(entry, "serverErrorCode") == nil, "\(saved.text)")
                #expect(member(entry, "activationPosition") != nil)
            }
            let listed = try await relay.call(
                .get, TestRelay.path + "/public/subscriptions/list" + TestRelay.query())
            #expect(
                entries(listed).compactMap { member($0, "subscriptionID") } == ["d1", "q1", "z1"])
            let found = try await relay.post(
                "subscriptions/lookup", #"{"subscriptions":[{"subscriptionID":"q1"},"z1","x"]}"#)
            #expect(member(entries(found)[0], "subscriptionType") == "query")
            #expect(member(entries(found)[1], "zoneID") == ["zoneName": "notes"])
            #expect(member(entries(found)[2], "serverErrorCode") == "NOT_FOUND")
            let deleted = try await relay.post(
                "subscriptions/modify",
                #"{"operations":[{"operationType":"delete","subscription":{"subscriptionID":"#
                    + #""q1"}}]}"#
            )
            #expect(entries(deleted) == [["subscriptionID": "q1", "deleted": true]])
        }
    }

    @Test func `a query comes back as it was sent with the canonical text`() async throws {
        try await TestRelay.with { relay in
            let filter =
                #"[{"comparator":"EQUALS","fieldName":"artist","fieldValue":{"value":"artist-1"}}]"#
            let subscription =
                #"{"subscriptionType":"query","query":{"recordType":"Artwork","filterBy":"#
                + #"\#(filter)},"firesOn":["create","delete"],"firesOnce":true}"#
            let saved = try await relay.post("subscriptions/modify", Self.create(subscription))
            let entry = entries(saved).first
            let query = member(entry, "query")
            let sent = try JSONValue(parsing: filter)
            #expect(member(query, "filterBy") == sent)
            #expect(member(query, "canonicalPredicate") == #"artist == "artist-1""#)
            #expect(member(entry, "firesOnce") == true)
            guard case .string(let id)? = member(entry, "subscriptionID") else {
                Issue.record("no ID was assigned: \(saved.text)")
                return
            }
            #expect(UUIDBytes(id) != nil)
        }
    }

    static let bits: [(String, [JSONValue], Bool)] = [
        ("1", ["create"], false), ("6", ["update", "delete"], false),
        ("11", ["create", "update"], true),
        (#"11,"firesOnce":false"#, ["create", "update"], false),
    ]

    @Test(arguments: bits)
    func `the bits of native options mean the same as their names`(
        bits: String, names: [JSONValue], isOnce: Bool
    ) async throws {
        try await TestRelay.with { relay in
            let saved = try await relay.post(
                "subscriptions/modify", Self.create(Self.query("q1", firesOn: bits)))
            let entry = entries(saved).first
            #expect(member(entry, "firesOn") == .array(names), "\(saved.text)")
            #expect(member(entry, "firesOnce") == .bool(isOnce))
        }
    }

    @Test func `a subscription that shows nothing wakes the application`() async throws {
        try await TestRelay.with { relay in
            let saved = try await relay.post(
                "subscriptions/modify", Self.create(Self.query("q1", info: "null")))
            #expect(
                member(entries(saved).first, "notificationInfo")
                    == ["shouldSendContentAvailable": true])
        }
    }

    @Test func `each user and each database has its own subscriptions`() async throws {
        try await TestRelay.with { relay in
            for (user, database) in [
                ("_alice", "public"), ("_bob", "public"), ("_alice", "private"),
            ] {
                let saved = try await relay.post(
                    "subscriptions/modify", Self.create(Self.query("q1")), user: user,
                    database: database)
                #expect(member(entries(saved).first, "serverErrorCode") == nil, "\(saved.text)")
            }
            let listed = try await relay.call(
                .get, TestRelay.path + "/shared/subscriptions/list" + TestRelay.query())
            #expect(entries(listed).isEmpty)
        }
    }

    // MARK: Idempotency and duplicates

    @Test func `saving again succeeds, and a duplicate names the first`() async throws {
        try await TestRelay.with { relay in
            let first = try await relay.post(
                "subscriptions/modify", Self.create(Self.query("q1")))
            let again = try await relay.post(
                "subscriptions/modify", Self.create(Self.query("q1")))
            #expect(entries(first) == entries(again))
            let other = try await relay.post(
                "subscriptions/modify", Self.create(Self.query("q2")))
            #expect(other.status == 200)
            let entry = entries(other).first
            #expect(member(entry, "subscriptionID") == "q2")
            #expect(member(entry, "serverErrorCode") == "EXISTS")
            #expect(member(entry, "reason") == "subscription is duplicate of 'q1'")
            #expect(member(entry, "duplicateOf") == "q1")
        }
    }

    // MARK: Neighbours

    private static let mixed =
        #"{"operations":[{"operationType":"create","subscription":\#(query("a"))},{"operatio"#
        + #"nType":"create","subscription":{"subscriptionID":"b","subscriptionType":"que"#
        + #"ry"}},{"operationType":"delete","subscription":{"subscriptionID":"c"}}]"#

    @Test func `a bad operation does not affect its neighbours`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post("subscriptions/modify", Self.mixed + "}")
            #expect(answer.status == 200)
            let codes = entries(answer).map { member($0, "serverErrorCode") }
            #expect(codes == [nil, "BAD_REQUEST", "NOT_FOUND"])
            #expect(
                member(entries(answer)[1], "reason")
                    == "operations[1].subscription.query: is required")
            #expect(member(entries(answer)[1], "subscriptionID") == "b")
        }
    }

    @Test func `an atomic request is applied as a whole or not at all`() async throws {
        try await TestRelay.with { relay in
            let unread = try await relay.post(
                "subscriptions/modify", Self.mixed + #","atomic":true}"#)
            #expect(
                entries(unread).map { member($0, "serverErrorCode") }
                    == ["ATOMIC_ERROR", "BAD_REQUEST", "ATOMIC_ERROR"])
            let refused = try await relay.post(
                "subscriptions/modify",
                #"{"atomic":true,"operations":[{"operationType":"create","subscription":"#
                    + #"\#(Self.query("a"))},{"operationType":"delete","subscription":{"subs"#
                    + #"criptionID":"c"}}]}"#
            )
            #expect(
                entries(refused).map { member($0, "serverErrorCode") }
                    == ["ATOMIC_ERROR", "NOT_FOUND"])
            let listed = try await relay.call(
                .get, TestRelay.path + "/public/subscriptions/list" + TestRelay.query())
            #expect(entries(listed).isEmpty)
        }
    }

    // MARK: Bad input in place

    static let badSubscriptions: [(String, String, String)] = [
        (
            query("q", type: "_secret"), "ACCESS_DENIED",
            "operations[0].subscription: the record type \"_secret\" does not allow subscriptions "
                + "(denied by \"_*\")"
        ),
        (
            query("q", firesOn: "[]"), "BAD_REQUEST",
            "operations[0].subscription.firesOn: at least one of \"create\", \"update\", "
                + "\"delete\" is required"
        ),
        (
            query("q", firesOn: #"["Create"]"#), "BAD_REQUEST",
            "operations[0].subscription.firesOn[0]: \"Create\" is unknown; allowed are "
                + "\"create\", \"update\", \"delete\""
        ),
        (
            query("q", firesOn: "8"), "BAD_REQUEST",
            "operations[0].subscription.firesOn: 8 is not a valid sum of options: 1 is \"create\", "
                + "2 \"update\" and 4 \"delete\", of which at least one is required; 8 is to fire "
                + "once"
        ),
        (
            query("", type: "Artwork"), "BAD_REQUEST",
            "operations[0].subscription.subscriptionID: not \(SubscriptionID.rule)"
        ),
        (
            #"{"subscriptionType":"zone"}"#, "BAD_REQUEST",
            "operations[0].subscription.zoneID: is required, unless zoneWide is true for the "
                + "whole database"
        ),
        (
            #"[]"#, "BAD_REQUEST",
            "operations[0].subscription: an object is expected, found an array"
        ),
    ]

    @Test(arguments: badSubscriptions)
    func `an invalid subscription is refused in its place`(
        subscription: String, code: String, reason: String
    ) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post("subscriptions/modify", Self.create(subscription))
            #expect(answer.status == 200)
            #expect(member(entries(answer).first, "serverErrorCode") == .string(code))
            #expect(member(entries(answer).first, "reason") == .string(reason))
        }
    }

    @Test func `updating nothing and creating over something else are refused`()
        async throws
    {
        try await TestRelay.with { relay in
            let update =
                #"{"operations":[{"operationType":"update","subscription":\#(Self.query("q1"))}]}"#
            let none = try await relay.post("subscriptions/modify", update)
            #expect(member(entries(none).first, "serverErrorCode") == "NOT_FOUND")
            _ = try await relay.post("subscriptions/modify", Self.create(Self.query("q1")))
            let other = try await relay.post(
                "subscriptions/modify", Self.create(Self.query("q1", type: "Artist")))
            #expect(member(entries(other).first, "serverErrorCode") == "EXISTS")
            let updated = try await relay.post(
                "subscriptions/modify",
                #"{"operations":[{"operationType":"update","subscription":"#
                    + #"\#(Self.query("q1", type: "Artist"))}]}"#
            )
            #expect(member(entries(updated).first, "serverErrorCode") == nil)
        }
    }
}
