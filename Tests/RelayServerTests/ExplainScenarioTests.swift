import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// `subscriptions/explain` and its administrative counterpart, as callers see them.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ExplainScenarioTests {
    /// One subscription of alice's, one change, and the sentence that explains it.
    struct Sentence: Sendable, CustomTestStringConvertible {
        var testDescription: String { sentence }
        var subscription: JSONValue
        var change: JSONValue
        var step: String
        var sentence: String

        init(
            _ subscription: JSONValue, _ change: JSONValue, _ step: String, _ sentence: String
        ) {
            self.subscription = subscription
            self.change = change
            self.step = step
            self.sentence = sentence
        }
    }

    private static let cheap = JSONValue.query("q", "price < 100", firesOn: ["create", "update"])

    private static func updates(_ member: String, _ value: JSONValue) -> JSONValue {
        .query("q", "price < 100", firesOn: ["update"], adding: JSONObject([(member, value)]))
    }

    private static func update(_ before: Int64?, _ after: Int64) -> JSONValue {
        .change(
            "update", "a1", ["price": .integer(after)],
            adding: before.map { ["before": ["price": .integer($0)]] } ?? [:])
    }

    /// An update whose former record is known in part, without the field that the condition reads.
    private static let partlyKnown = JSONValue.change(
        "update", "a1", ["price": 50],
        adding: ["before": ["x": 2], "beforeCompleteness": "partial"])

    static let sentences = [
        Sentence(
            cheap, .change("create", "a1", ["price": 120]), "predicate",
            "Did not fire: price was 120, and the condition asks for price < 100."),
        Sentence(
            cheap, .change("create", "a1", [:]), "predicate",
            "Did not fire: price was missing, and the condition asks for price < 100."),
        Sentence(
            cheap, .change("create", "a1", ["price": "dear"]), "predicate",
            "Did not fire: price was a text, and the condition asks for price < 100."),
        Sentence(
            .query("q", "price < 100 AND artist = \"artist-1\""),
            .change("create", "a1", ["price": 120, "artist": "artist-2"]), "predicate",
            "Did not fire: price was 120, and the condition asks for price < 100; 1 more part "
                + "fails."),
        Sentence(
            cheap,
            .change("create", "a1", [:], adding: ["afterCompleteness": "partial"]), "predicate",
            "Did not fire: the change does not show price, and the condition asks for "
                + "price < 100."),
        Sentence(
            cheap, .change("delete", "a1", ["price": 1]), "operation",
            "Did not fire: it was a deletion, and the subscription asks for creations and "
                + "updates."),
        Sentence(
            cheap, .change("create", "a1", adding: ["recordType": "Artist"]), "recordType",
            "Did not fire: it was of the record type Artist, and the subscription asks for "
                + "Artwork."),
        Sentence(
            .query("q", adding: ["zoneID": ["zoneName": "gallery"]]), .change("create", "a1"),
            "zone",
            "Did not fire: it was in the zone _defaultZone, and the subscription asks for gallery."
        ),
        Sentence(
            .query(
                "q", adding: ["zoneID": ["zoneName": "gallery", "ownerRecordName": "bob"]]),
            .change("create", "a1", adding: ["zoneID": ["zoneName": "gallery"]]), "zone",
            "Did not fire: it was in the zone gallery, and the subscription asks for gallery of "
                + "bob."),
        Sentence(
            cheap, .change("create", "a1", ["price": 1], adding: ["readers": ["bob"]]),
            "readRule", ""),
        Sentence(
            cheap, .change("create", "a1", ["price": 1], adding: ["snapshot": true]), "appended",
            "Did not fire: the change was part of a snapshot, and snapshots fire nothing."),
        Sentence(
            updates("firesWhen", "entered"), update(50, 60), "transition",
            "Did not fire: the record already matched before, and the subscription asks for "
                + "records that begin to match."),
        Sentence(
            updates("firesWhen", "entered"), update(nil, 60), "transition",
            "Did not fire: the change does not show the record as it was before, and the "
                + "subscription asks for records that begin to match."),
        Sentence(
            updates("firesWhen", "left"), update(50, 60), "transition",
            "Did not fire: the record still matches, and the subscription asks for records that "
                + "cease to match."),
        Sentence(
            updates("firesWhen", "stayed"), update(150, 60), "transition",
            "Did not fire: the record did not match before, and the subscription asks for records "
                + "that matched and still match."),
        Sentence(
            updates("firesWhen", "left"), partlyKnown, "transition",
            "Did not fire: the change does not show all fields that the condition reads, and "
                + "the subscription asks for records that cease to match."),
        Sentence(
            updates("firesWhen", "stayed"), partlyKnown, "transition",
            "Did not fire: the change does not show all fields that the condition reads, and "
                + "the subscription asks for records that matched and still match."),
        Sentence(
            updates("changedKeys", ["price"]), update(60, 60), "changedKeys",
            "Did not fire: the update did not change price, and the subscription asks for that."),
    ]

    @Test(arguments: sentences)
    func `one sentence names the step that decided`(_ sentence: Sentence) async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(sentence.subscription)
            let position = try await Self.post(sentence.change, relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Self.ask(
                ["position": .string(position), "subscriptionID": "q"], relay)
            guard !sentence.sentence.isEmpty else {
                #expect(reply.status == 404, "\(reply.text)")
                return
            }
            #expect(
                reply["explanations", "0", "step"] == .string(sentence.step), "\(reply.text)")
            #expect(reply["sentence"] == .string(sentence.sentence), "\(reply.text)")
        }
    }

    /// Posts a change and returns its position.
    static func post(_ change: JSONValue, _ relay: RunningRelay) async throws -> String {
        let reply = try await relay.container.post(change)
        guard case .string(let position)? = reply["results", "0", "position"] else {
            throw Missing(reply.text)
        }
        return position
    }

    struct Missing: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    /// Asks as a user.
    static func ask(
        _ question: JSONValue, _ relay: RunningRelay, as user: String = "alice",
        in database: String = "public"
    ) async throws -> RelayClient.Reply {
        try await relay.container.call(
            "subscriptions/explain", question, as: user, in: database)
    }

    // MARK: Pushes

    @Test func `explain covers every device of a firing, and finds a change by a delivery`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(Self.cheap)
            let position = try await Self.post(
                .change(
                    "create", "a1", ["price": 12],
                    adding: ["origin": ["deviceID": "phone", "userRecordName": "alice"]]), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Self.ask(
                ["recordType": "Artwork", "recordName": "a1"], relay)
            #expect(reply["explanations", "0", "verdict"] == "fired", "\(reply.text)")
            #expect(reply["explanations", "0", "position"] == .string(position))
            #expect(
                reply["explanations", "0", "devices", "0", "sentence"] == "It made the change.",
                "\(reply.text)")
            #expect(reply["explanations", "0", "devices", "0", "step"] == "origin")
            #expect(reply["explanations", "0", "devices", "1", "standing"] == "delivered")
            #expect(!reply.text.contains(SampleDevice.usual[1].token))
            let push = try #require(relay.gateway.simulated.pushes.first)
            for question in [
                ["deliveryID": .string(push.apnsID)],
                ["deliveryID": .string(push.apnsID), "position": .string(position)],
            ] as [JSONValue] {
                let answer = try await Self.ask(question, relay)
                #expect(answer["explanations", "0", "subscriptionID"] == "q", "\(answer.text)")
                #expect(answer["explanations", "0", "devices", "0", "deviceID"] == "tablet")
                #expect(
                    answer["explanations", "0", "devices", "0", "payload"] == push.json,
                    "\(answer.text)")
                // Other users do not learn of it.
                let other = try await Self.ask(question, relay, as: "bob")
                #expect(other.status == 404, "\(other.text)")
            }
            let device = try await relay.client.administer(
                "GET", "\(relay.container.path)/explain?position=\(position)&device=tablet")
            #expect(device["explanations", "0", "devices", "0", "deviceID"] == "tablet")
            #expect(device["explanations", "0", "devices", "1"] == nil)
        }
    }

    @Test func `a question with only a subscription returns its firings and near misses`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("q", "price < 100 AND artist = \"artist-1\""))
            for (name, price, artist) in [
                ("a1", 20, "artist-1"), ("a2", 120, "artist-1"), ("a3", 120, "artist-2"),
            ] as [(String, Int64, String)] {
                try await relay.container.post(
                    .change(
                        "create", name, ["price": .integer(price), "artist": .string(artist)]))
            }
            try await relay.relay.waitUntilSettled(within: .patience)
            let reply = try await Self.ask(["subscriptionID": "q"], relay)
            #expect(
                reply["sentence"]
                    == .string(
                        "Of the last 3 changes that it could watch, 1 fired it, and 1 missed by "
                            + "one comparison."),
                "\(reply.text)")
            #expect(reply["explanations", "0", "missedBy"] == 1)
            #expect(reply["explanations", "1", "verdict"] == "fired")
            #expect(reply["others"] == 1)
        }
    }

    @Test func `a deletion without a record fires conditions that read nothing of it`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.container.save(
                .query("any", "TRUEPREDICATE", firesOn: ["delete"]),
                .query("named", "recordName == 'a1'", firesOn: ["delete"]),
                .query("cheap", "price < 100", firesOn: ["delete"]))
            let position = try await Self.post(
                ["operation": "delete", "recordType": "Artwork", "recordName": "a1"], relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let arrivals = try await relay.arrivals()
            #expect(!arrivals.isEmpty && arrivals.allSatisfy { !$0.contains("cheap") })
            for (id, start) in [
                ("any", "Fired. "), ("named", "Fired. "),
                ("cheap", "Did not fire: the change does not show the record, and "),
            ] {
                let reply = try await Self.ask(
                    ["position": .string(position), "subscriptionID": .string(id)], relay)
                #expect(reply.text.contains("\"sentence\":\"\(start)"), "\(reply.text)")
            }
        }
    }

    @Test func `deleted and once subscriptions are explained as of the change`() async throws {
        try await RunningRelay.with { relay in
            let early = try await Self.post(.change("create", "a0"), relay)
            try await relay.container.save(
                .query("q"), .query("once", "TRUEPREDICATE", adding: ["firesOnce": true]))
            let fired = try await Self.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let after = try await Self.post(.change("create", "a2"), relay)
            _ = try await relay.container.call(
                "subscriptions/modify",
                [
                    "operations": [
                        ["operationType": "delete", "subscription": ["subscriptionID": "q"]]
                    ]
                ], as: "alice", in: "public")
            let late = try await Self.post(.change("create", "a3"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            _ = try await relay.relay.store.pruneEndedVersions(upTo: .init(.max))
            func sentence(_ position: String, _ id: String) async throws -> String {
                let reply = try await Self.ask(
                    ["position": .string(position), "subscriptionID": .string(id)], relay)
                guard case .string(let text)? = reply["sentence"] else { return reply.text }
                return text
            }
            #expect(try await sentence(early, "q").contains("saved after the change"))
            #expect(try await sentence(fired, "q").hasPrefix("Fired. phone: delivered, "))
            #expect(try await sentence(late, "q").contains("had been deleted at position"))
            #expect(try await sentence(fired, "once").hasPrefix("Fired. "))
            #expect(
                try await sentence(after, "once").hasPrefix(
                    "Did not fire: the subscription fires only once, and it had already fired by "
                        + "the change at position \(fired) ("))
        }
    }

    @Test func `every answer fits its schema in the document`() async throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        let schema = try #require(document.answerSchema(ofPathEnding: "/subscriptions/explain"))
        let check = SchemaCheck(document: document)
        try await RunningRelay.with { relay in
            try await relay.container.save(
                Self.cheap, .query("silent", info: ["shouldSendContentAvailable": true]))
            for price in [20, 120] as [Int64] {
                try await relay.container.post(
                    .change("create", "a\(price)", ["price": .integer(price)]))
            }
            try await relay.relay.waitUntilSettled(within: .patience)
            for question in [
                ["recordType": "Artwork", "recordName": "a20"],
                ["recordType": "Artwork", "recordName": "a120"],
                ["recordType": "Artwork", "recordName": "none"],
                ["subscriptionID": "q"], ["subscriptionID": "silent"],
            ] as [JSONValue] {
                let reply = try await Self.ask(question, relay).expect(200)
                #expect(check.problems(reply.json, schema) == [], "\(reply.text)")
            }
        }
    }

    // MARK: Rights

    @Test func `what a user may not read is answered like what does not exist`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            let hidden = try await Self.post(
                .change("create", "a1", adding: ["readers": ["bob"]]), relay)
            let others = try await Self.post(
                .change("create", "a2", adding: ["database": "private", "owner": "bob"]), relay)
            for position in [hidden, others] {
                let reply = try await Self.ask(["position": .string(position)], relay)
                let none = try await Self.ask(["position": "4000"], relay)
                #expect(reply.status == 404)
                #expect(
                    reply["reason"]
                        == .string("there is no change at position \(position)"),
                    "\(reply.text)")
                #expect(none["reason"] == "there is no change at position 4000")
            }
            let record = try await Self.ask(
                ["recordType": "Artwork", "recordName": "a1"], relay)
            let none = try await Self.ask(["recordType": "Artwork", "recordName": "zz"], relay)
            #expect(
                record.text.replacing("a1", with: "zz") == none.text, "\(record.text)")
            let operatorsView = try await relay.client.administer(
                "GET", "\(relay.container.path)/explain?position=\(hidden)&user=alice")
            #expect(
                operatorsView["sentence"]
                    == "Did not fire: alice may not read the record after this change.",
                "\(operatorsView.text)")
        }
    }

    @Test func `a user who loses the right to read learns that and no value`() async throws {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Artwork", ["shadow": true]
            ).expect(200)
            try await relay.container.save(.query("q", "price < 100", firesOn: ["update"]))
            try await relay.container.post(
                .change("create", "a1", ["price": 7], adding: ["readers": ["alice"]]))
            let position = try await Self.post(
                .change(
                    "update", "a1", ["price": 4711],
                    adding: ["before": ["price": 7], "readers": ["bob"]]), relay)
            let reply = try await Self.ask(["position": .string(position)], relay)
            #expect(
                reply["sentence"]
                    == "Did not fire: alice may not read the record after this change.",
                "\(reply.text)")
            #expect(!reply.text.contains("4711"), "\(reply.text)")
        }
    }

    // MARK: Pruned

    @Test func `pruned data is reported with the setting that removed it`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            let position = try await Self.post(.change("create", "a1"), relay)
            try await relay.relay.waitUntilSettled(within: .patience)
            let delivery = try #require(relay.gateway.simulated.pushes.first).apnsID
            var retention = Retention()
            retention.logAge = .zero
            retention.receiptAge = nil
            _ = try await relay.relay.store.prune(
                retention, at: Timestamp(seconds: 4_000_000_000), portion: 500)
            let reply = try await Self.ask(
                ["position": .string(position), "subscriptionID": "q"], relay)
            #expect(reply["explanations", "0", "verdict"] == "cannotTell", "\(reply.text)")
            #expect(reply.text.contains("retention.logHours"), "\(reply.text)")
            // The receipts of a delivery are kept longer than the log.
            let pushed = try await Self.ask(["deliveryID": .string(delivery)], relay)
            #expect(pushed["sentence"] == reply["sentence"], "\(pushed.text)")
            let theirs = try await relay.container.call(
                "subscriptions/explain", ["deliveryID": .string(delivery)], as: "bob",
                in: "public")
            #expect(theirs.status == 404, "\(theirs.text)")
            let operators = try await relay.client.administer(
                "GET", "\(relay.container.path)/explain?delivery=\(delivery)")
            #expect(operators["sentence"] == reply["sentence"], "\(operators.text)")
        }
    }

    // MARK: Bad input

    static let refusals: [(JSONValue, Int, String)] = [
        ([:], 400, "position: name a change by position"),
        (["recordType": "Artwork"], 400, "recordName: a record needs both"),
        (["recordName": "a1"], 400, "recordType: a record needs both"),
        (["position": "x"], 400, "position: a whole number from 0 is expected, found \"x\""),
        (["position": -1], 400, "position: a whole number from 0 is expected"),
        (
            ["position": "1", "recordType": "A", "recordName": "b"], 400,
            "recordName: name a change"
        ),
        (["deliveryID": "x"], 400, "deliveryID: \"x\" is not a UUID"),
        (
            [
                "deliveryID": "71e7c0de-0000-8000-8000-000000000000", "subscriptionID": "q",
            ], 400, "deliveryID: a delivery already names one subscription"
        ),
        (["subscriptionID": "none"], 404, "there is no subscription \"none\""),
        (["subscriptionID": "q", "limit": 0], 400, "limit: must be 1 to 50, found 0"),
        (["subscriptionID": ""], 400, "subscriptionID"),
        (["what": 1], 400, "what"),
        (["position": "18446744073709551615"], 404, "there is no change at position"),
        (["position": "0"], 404, "there is no change at position 0"),
        (
            ["deliveryID": "71e7c0de-0000-8000-8000-000000000000"], 404, "there is no delivery"
        ),
    ]

    @Test func `bad input is refused with the field and the allowed values`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q"))
            for (question, status, reason) in Self.refusals {
                let reply = try await Self.ask(question, relay)
                #expect(reply.status == status, "\(question.text): \(reply.text)")
                #expect(reply.text.replacing("\\\"", with: "\"").contains(reason), "\(reply.text)")
            }
            let path = "\(relay.container.path)/explain"
            for (query, reason) in [
                ("position=1", "user: name the user whose"),
                ("device=none&position=1", "no user has a device"),
                ("position=1&user=alice&database=x", "database:"),
                ("subscription=q&user=alice&limit=51", "limit: must be 1 to 50"),
            ] {
                let reply = try await relay.client.administer("GET", "\(path)?\(query)")
                #expect(reply.status == 400, "\(reply.text)")
                #expect(reply.text.contains(reason), "\(reply.text)")
            }
        }
    }
}
