import ArgumentParser
import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// `belfry trigger`, and what `belfry dev` prints about each change.
@Suite struct TriggerCommandTests {
    @Test(arguments: [
        ("title=Lilies", "title", FieldValue.string("Lilies")),
        ("price=120", "price", .integer(120)), ("price=1.5", "price", .double(1.5)),
        ("open=true", "open", .bool(true)), ("phone:string=0170", "phone", .string("0170")),
        ("empty=", "empty", .string("")), ("a:b:int64=3", "a:b", .integer(3)),
        ("made:timestamp=1970-01-01T00:00:01Z", "made", .timestamp(Timestamp(seconds: 1))),
        ("made:timestamp=1000", "made", .timestamp(Timestamp(seconds: 1))),
        ("tags:json=[\"a\", 1]", "tags", .list([.string("a"), .integer(1)])),
        ("data:bytes=AQI=", "data", .bytes([1, 2])), ("sum=1=1", "sum", .string("1=1")),
        ("mark=\u{301}x", "mark", .string("\u{301}x")),
        ("mark:string=\u{FE0F}", "mark", .string("\u{FE0F}")),
    ]) func `fields are parsed`(text: String, name: String, value: FieldValue) throws {
        let field = try FieldArgument(text)
        #expect(field.name == name)
        #expect(field.value == value)
    }

    @Test(arguments: [
        ("title", "is not name=value"), ("=1", "is not name=value"),
        ("a:number=1", "\"number\" is not a type; allowed are string, int64"),
        ("a:int64=1.5", "a: \"1.5\" is not a whole number of 64 bits"),
        ("a:location=91,0", "is not a location"),
        ("a:location=1,2,x", "is not a location"),
        ("a:boolean=yes", "is not true or false"),
        ("a:double=inf", "is not a number"), ("a:json={", "is not a value in JSON"),
        (
            "a:json={\"$date\": \"2026-01-01T00:00:00Z\"}",
            "a: $date takes seconds since 1970, found a string"
        ),
        ("a:json={\"b\": [{\"$dat\": 1}]}", "a.b[0]: $dat is not a known kind of value; "),
    ]) func `a field that cannot be read says why`(text: String, reason: String) {
        let error = #expect(throws: FieldArgumentError.self) { try FieldArgument(text) }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }

    @Test(arguments: [
        (["BELFRY_SORUCE_URL": "http://a/changes/1/b"], "BELFRY_SORUCE_URL", "BELFRY_SOURCE_URL"),
        (
            ["BELFRY_SOURCE_URL": "http://a/changes/1/b", "BELFRY_SOURCE_SECRTE": "x"],
            "BELFRY_SOURCE_SECRTE", "BELFRY_SOURCE_SECRET"
        ),
    ])
    func `a misspelt environment variable is reported`(
        environment: [String: String], name: String, meant: String
    ) {
        let error = #expect(throws: CommandFailure.self) {
            try PostedSource.found(
                url: nil, secret: nil, flags: (url: "--url", secret: "--secret"), environment)
        }
        let told = "; \(name) is not a setting: did you mean \(meant)?"
        #expect(error?.description.hasSuffix(told) == true, "\(error?.description ?? "")")
    }

    @Test func `the relay named by a variable is reported with the variable`() async throws {
        let url = "http://127.0.0.1:1/changes/1/a/development/b"
        let posted = try await BuiltBelfry.run(
            ["trigger", "create", "Todo", "t1"],
            environment: ["BELFRY_SOURCE_URL": url, "BELFRY_SOURCE_SECRET": "x"])
        #expect(posted.code == 69)
        #expect(posted.complaint.contains("; BELFRY_SOURCE_URL names it, so belfry dev"))
        let named = try await BuiltBelfry.run(
            ["trigger", "create", "Todo", "t1", "--url", url, "--secret", "x"])
        #expect(named.code == 69)
        #expect(!named.complaint.contains("BELFRY_SOURCE_URL"), "\(named.complaint)")
    }

    @Test func `an update's former image is the new one with the former values`() throws {
        let command = try TriggerCommand.parse([
            "update", "Todo", "t1", "-f", "done=true", "-f", "title=Milk", "--before",
            "done=false", "--origin-device", "phone", "--reader", "alice",
        ])
        #expect(
            command.body == [
                "operation": "update", "recordType": "Todo", "recordName": "t1",
                "after": .object(
                    FieldValue.notation(fields: ["done": .bool(true), "title": .string("Milk")])),
                "before": .object(
                    FieldValue.notation(fields: ["done": .bool(false), "title": .string("Milk")])),
                "readers": ["alice"], "origin": ["deviceID": "phone"],
            ])
        #expect(throws: (any Error).self) {
            try TriggerCommand.parse(["delete", "Todo", "t1", "-f", "a=1"])
        }
        #expect(throws: (any Error).self) {
            try TriggerCommand.parse(["create", "Todo", "t1", "-b", "a=1"])
        }
    }

    @Test func `a sandbox prints one line about what each change fired`()
        async throws
    {
        let home = try Folder.make()
        let sandbox = try await DevCommandTests.Sandbox.start(["--port", "0"], home: home)
        let output = sandbox.output
        let subscribe = try #require(
            output.text.firstMatch(of: /(?s)(curl [^\n]*subscriptions\/modify.*?\}\]\}')/)
        ).1
        let saved = try await Shell.run(String(subscribe))
        #expect(saved.contains("activationPosition"), "\(saved)")
        func trigger(_ arguments: String...) async throws -> BuiltBelfry.Ending {
            try await BuiltBelfry.run(["trigger"] + arguments, environment: ["HOME": home.path])
        }
        let first = try await trigger(
            "create", "Artwork", "a1", "--field", "artist=artist-1", "--origin-device",
            "alices-phone")
        #expect(first.code == 0, "\(first.complaint)")
        #expect(first.output.hasPrefix("appended at position "))
        let fired = try await output.line { $0.hasPrefix("Artwork/a1:") }
        #expect(
            fired
                == "Artwork/a1: fired 1 of 1: new-artworks; 1 device got no push, because it made "
                + "the change")
        _ = try await output.line { $0.hasPrefix("The gateway got a push") }
        let position = try #require(first.output.firstMatch(of: /[0-9]+/)).0
        for (user, told) in [
            ([], "new-artworks of alice"), (["--user", "alice"], "new-artworks of alice"),
            (["--user", "bob"], "bob had no subscription in the public database when the change"),
        ] as [([String], String)] {
            let question = ["changes", "show", String(position), "-c", "iCloud.com.example.Art"]
            var shown = try await BuiltBelfry.run(
                question + user, environment: ["HOME": home.path])
            // The gateway's answer may still be on its way.
            while shown.output.contains("No push was made") {
                shown = try await BuiltBelfry.run(
                    question + user, environment: ["HOME": home.path])
            }
            #expect(shown.code == 0, "\(shown.complaint)")
            #expect(shown.output.contains(told), "\(shown.output)")
            #expect(shown.output.contains("DELIVERIES\n"), "\(shown.output)")
        }
        _ = try await trigger("create", "Artwork", "a2", "--field", "artist=7")
        let missed = try await output.line { $0.hasPrefix("Artwork/a2:") }
        #expect(
            missed
                == "Artwork/a2: fired 0 of 1; nearest: artist is a number, "
                + "but the condition asks for artist == \"artist-1\" (new-artworks of alice)")
        _ = try await trigger("update", "Artwork", "a3", "--field", "artist=artist-1")
        let update = try await output.line { $0.hasPrefix("Artwork/a3:") }
        #expect(update.contains("it is an update, but the subscription asks for creations only"))
        _ = try await trigger("create", "Todo", "t1")
        let alone = try await output.line { $0.hasPrefix("Todo/t1:") }
        #expect(alone == "Todo/t1: fired 0; nobody has a subscription to Todo")
        let wrong = try await trigger("create", "Todo", "t2", "--secret", "other")
        #expect(wrong.code == 1)
        #expect(wrong.complaint.contains("does not contain this source's secret"))
        #expect(await sandbox.end() == 0)
        let gone = try await trigger("create", "Todo", "t3")
        #expect(gone.code == 78)
        #expect(gone.complaint.contains("no belfry dev is running"))
    }

    @Test func `any relay can be triggered by a source's URL and signed with its key`()
        async throws
    {
        let store = try TemporaryStore()
        let gateway = try await SampleGateway.start(
            in: URL(filePath: store.path).deletingLastPathComponent())
        let relay = try await ServedBelfry.start(on: store.path, for: gateway)
        let container = try await SampleContainer.create(on: relay.client, for: gateway)
        let environment = ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken]
        let admin = [
            "-c", container.key.container.rawValue, "-e", container.key.environment.rawValue,
            "--url", relay.client.adminURL, "--json",
        ]
        for extra in [["signed"], ["bare", "--scheme", "bearer"]] {
            let set = try await BuiltBelfry.run(
                ["sources", "set", "--preset", "belfry"] + extra + admin,
                environment: environment)
            guard case .string(let secret)? = try set.member("secret") else {
                Issue.record("\(set.complaint)")
                continue
            }
            let url =
                "\(relay.client.url)/changes/1/\(container.key.container)/"
                + "\(container.key.environment.rawValue)/\(extra[0])"
            let posted = try await BuiltBelfry.run(
                ["trigger", "create", "Todo", "t1", "--json"],
                environment: ["BELFRY_SOURCE_URL": url, "BELFRY_SOURCE_SECRET": secret])
            #expect(posted.code == 0, "\(posted.complaint)")
            #expect(try posted.member("results") != nil)
        }
        #expect(await relay.end() == 0)
        await gateway.simulated.stop()
    }
}
