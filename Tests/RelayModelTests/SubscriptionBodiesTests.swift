import RelayModel
import RelayTestKit
import Testing

/// Reading bodies one after another gives the same as reading each alone.
@Suite struct SubscriptionBodiesTests {
    private static let owner = SubscriptionOwner(
        container: Fixtures.container, database: .private, user: Fixtures.identifier("bob"))

    private func check(_ texts: [String], of owner: SubscriptionOwner = Self.owner) throws {
        var bodies = SubscriptionBodies()
        // Twice, so that in the second round every shape is known.
        for text in texts + texts {
            let alone = try Subscription(stored: try JSONValue(parsing: text), of: owner)
            let read = try bodies.subscription(text, of: owner)
            #expect(read == alone, "\(text)")
        }
    }

    private static let conditions = [
        #"title == 'x'"#, #"title == "x""#, #"title == "a \\ b""#, "title == 'é\u{1F600}'",
        "title == 'a\tb'", #"title == "line\nnext""#, "title == 'x' /* \u{7} */", "",
    ]

    private static let infos: [@Sendable (inout NotificationInfo) -> Void] = [
        { _ in }, { $0.alertBody = "new" }, { $0.alertBody = #"a "new" one"# },
        { $0.soundName = "default" }, { $0.shouldBadge = true }, { $0.desiredKeys = ["title"] },
    ]

    @Test func `names, conditions and notification infos in every combination`() throws {
        var texts: [String] = []
        for (number, condition) in Self.conditions.enumerated() {
            for (place, change) in Self.infos.enumerated() {
                var subscription = Fixtures.subscription(
                    #"s "\#(number)" \#(place)"#, where: condition)
                change(&subscription.notificationInfo)
                texts.append(JSONValue.object(subscription.json).text)
                subscription.firesOn = .delete
                subscription.firesOnce = number.isMultiple(of: 2)
                texts.append(JSONValue.object(subscription.json).text)
            }
        }
        try check(texts)
    }

    @Test func `every form of a condition, with and without arguments and zones`() throws {
        let sources: [(PredicateForm?, JSONValue, [JSONValue])] = [
            (.predicate, "title == %@", ["x"]), (.rql, "title == 'x'", []),
            (.rql, "title == $0", ["x"]), (.where, ["title": ["$eq": "x"]], []),
            (.filterBy, [["fieldName": "title", "comparator": "EQUALS"]], []), (nil, .null, []),
        ]
        let zones: [ZoneID?] = [nil, ZoneID(zoneName: "a"), ZoneID(zoneName: "b")]
        var texts: [String] = []
        for (form, source, arguments) in sources {
            for zoneID in zones {
                var subscription = Fixtures.subscription("s", where: "TRUEPREDICATE")
                subscription.scope = .query(
                    SubscriptionQuery(
                        recordType: Fixtures.identifier("Art"), form: form, source: source,
                        arguments: arguments, canonical: #"title == "x""#), zoneID: zoneID)
                texts.append(JSONValue.object(subscription.json).text)
            }
        }
        var zone = Fixtures.subscription("z", where: "TRUEPREDICATE")
        zone.scope = .zone(try #require(ZoneID(zoneName: "a")), recordType: nil)
        texts.append(JSONValue.object(zone.json).text)
        zone.scope = .database(recordType: nil)
        texts.append(JSONValue.object(zone.json).text)
        try check(texts)
    }

    @Test func `parts learned from one database are not used for another`() throws {
        var bodies = SubscriptionBodies()
        let text = JSONValue.object(Fixtures.subscription("s", where: "title == 'x'").json).text
        for database in [DatabaseScope.public, .private, .public] {
            let owner = SubscriptionOwner(
                container: Fixtures.container, database: database, user: Self.owner.user)
            let alone = try Subscription(stored: try JSONValue(parsing: text), of: owner)
            let read = try bodies.subscription(text, of: owner)
            #expect(read == alone)
        }
        let shared = SubscriptionOwner(
            container: Self.owner.container, database: .shared, user: Self.owner.user)
        #expect(throws: JSONContractError.self) {
            _ = try bodies.subscription(text, of: shared)
        }
    }

    @Test(arguments: [
        "{", "", "[]", #"{"subscriptionID":"b"}"#,
        #"{"subscriptionID":"b","subscriptionType":"query","query":{"recordType":"Art","#
            + #""predicate":"x","canonicalPredicate":"x"},"firesOn":["fly"]}"#,
        #"{"subscriptionID":"","subscriptionType":"query","query":{"recordType":"Art","#
            + #""predicate":"x","canonicalPredicate":"x"},"firesOn":["create"]}"#,
    ])
    func `a malformed body is refused alone and after others`(text: String) throws {
        var bodies = SubscriptionBodies()
        let good = JSONValue.object(Fixtures.subscription("s", where: "title == 'x'").json).text
        _ = try bodies.subscription(good, of: Self.owner)
        #expect(throws: (any Error).self) {
            _ = try bodies.subscription(text, of: Self.owner)
        }
    }
}
