import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// What the operator learns about a webhook that a source names by its own ID.
///
/// It shows which changes the webhook brought, and that it is known, so that a repetition is a
/// duplicate.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ExplainSentTests {
    private static func ask(
        _ query: String, _ relay: RunningRelay
    ) async throws -> RelayClient.Reply {
        try await relay.client.administer("GET", "\(relay.container.path)/explain?\(query)")
    }

    @Test func `a duplicate is found by the sender's ID`() async throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        let check = SchemaCheck(document: document)
        try await RunningRelay.with { relay in
            try await relay.container.save(.query("q", "price < 100"))
            let headers = ["webhook-id": "msg_1"]
            let batch: JSONValue = [
                .change("create", "a1", ["price": 1]), .change("create", "a2", ["price": 120]),
            ]
            let first = try await relay.container.post(batch, headers: headers)
            // IDs that merely begin alike are different.
            try await relay.container.post(
                .change("create", "a3"), headers: ["webhook-id": "msg_1#x"])
            try await relay.container.post(
                .change("create", "a4"), headers: ["webhook-id": "msg_10"])
            let again = try await relay.container.post(batch, headers: headers)
            #expect(again["results", "0", "status"] == "duplicate")
            try await relay.relay.waitUntilSettled(within: .patience)
            let known = try await Self.ask("source=database&webhookID=msg_1", relay).expect(200)
            let positions = [first["results", "0", "position"], first["results", "1", "position"]]
            #expect(known["known", "0", "position"] == positions[0], "\(known.text)")
            #expect(known["known", "1", "position"] == positions[1])
            #expect(known["known", "2"] == nil)
            #expect(known["explanations"] == [])
            let sentence = known["sentence"]?.string ?? ""
            #expect(
                sentence.hasPrefix(
                    "The webhook \"msg_1\" from database was appended at 2 positions, the first of "
                ),
                "\(sentence)")
            #expect(
                sentence.hasSuffix(" changes with the same ID are duplicates and fire nothing."),
                "\(sentence)")
            let alice = try await Self.ask(
                "source=database&webhookID=msg_1&user=alice", relay
            ).expect(200)
            #expect(alice["explanations", "0", "verdict"] == "fired", "\(alice.text)")
            #expect(alice["explanations", "1", "verdict"] == "didNotFire")
            for reply in [known, alice] {
                let schema: JSONValue = ["$ref": "#/components/schemas/Explanations"]
                #expect(check.problems(reply.json, schema) == [], "\(reply.text)")
            }
        }
    }

    @Test func `parked and appended changes of a batch are shown together`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.set(
                source: "shop",
                [
                    "preset": "belfry", "verification": ["scheme": "none"],
                    "onUnmappable": "park",
                ])
            // More than one page of changes precedes it.
            let filler = JSONValue.string(String(repeating: "x", count: 900_000))
            for number in 1...6 {
                try await relay.container.post(
                    ["operation": "create", "after": ["text": filler]], to: "shop",
                    headers: ["webhook-id": "filler_\(number)"])
            }
            try await relay.container.post(
                [.change("create", "a1"), ["operation": "create"]], to: "shop",
                headers: ["webhook-id": "msg_m"])
            let mixed = try await Self.ask("source=shop&webhookID=msg_m", relay).expect(200)
            let sentence = mixed["sentence"]?.string ?? ""
            #expect(
                sentence.hasPrefix("The webhook \"msg_m\" from shop was appended at position "),
                "\(sentence)")
            #expect(
                sentence.hasSuffix(" Another change of it could not be mapped and is parked."),
                "\(sentence)")
            #expect(mixed["parked"] == ["7"], "\(mixed.text)")
            let last = try await Self.ask("source=shop&webhookID=filler_6", relay).expect(200)
            #expect(last["parked"] == ["6"], "\(last.text)")
        }
    }

    @Test func `unknown and parked webhooks are reported as such`() async throws {
        try await RunningRelay.with { relay in
            try await relay.container.set(
                source: "shop",
                [
                    "preset": "belfry", "verification": ["scheme": "none"],
                    "onUnmappable": "park",
                ])
            try await relay.container.post(
                ["operation": "create"], to: "shop", headers: ["webhook-id": "msg_p"])
            let parked = try await Self.ask("source=shop&webhookID=msg_p", relay).expect(200)
            #expect(
                parked["sentence"]
                    == "The webhook \"msg_p\" from shop could not be mapped and is parked.",
                "\(parked.text)")
            #expect(parked["parked", "0"] == "1")
            let none = try await Self.ask("source=database&webhookID=msg_p", relay).expect(200)
            let sentence = none["sentence"]?.string ?? ""
            #expect(sentence.hasPrefix("Nothing is known of \"msg_p\" from database"))
            for (query, reason) in [
                ("source=shop", "webhookID: a webhook needs both"),
                ("webhookID=m", "source: a webhook needs both"),
                ("source=shop&webhookID=m&position=1&user=alice", "not by both"),
                ("source=shop&webhookID=", "webhookID: must be 1 to 255 bytes, found 0"),
                ("source=shop&webhookID=m&device=none", "no user has a device"),
            ] {
                let reply = try await Self.ask(query, relay)
                #expect(reply.status == 400, "\(query): \(reply.text)")
                #expect(reply.text.contains(reason), "\(reply.text)")
            }
            // A user can neither ask for a change source nor learn which one it was.
            let user = try await ExplainScenarioTests.ask(
                ["source": "shop", "webhookID": "msg_p"], relay)
            #expect(user.status == 400, "\(user.text)")
        }
    }
}

/// Which parked changes may be about a record.
@Suite struct ParkedNameTests {
    @Test(arguments: [
        ("5", #"{"id":5}"#, true), ("5", #"{"id":"5"}"#, true), ("5", "[15,5]", true),
        ("5", #"{"id":55}"#, false), ("5", #"{"id":1.5}"#, false), ("5", #"{"id":-5}"#, false),
        ("5", #"{"id":"x5"}"#, false), ("-5", #"{"id":-5}"#, true), ("a1", #"{"id":"a1"}"#, true),
        ("a1", #"{"id":"a12"}"#, false), ("a1", #"{"id":a1}"#, false), ("é", #"["é"]"#, true),
        ("5", "", false),
    ])
    func `a record name is found as a string, and a number as a number`(
        name: String, body: String, isFound: Bool
    ) throws {
        let name = try #require(RecordName(rawValue: name))
        #expect(ExplainService.mayName(name, Array(body.utf8)) == isFound)
    }
}
