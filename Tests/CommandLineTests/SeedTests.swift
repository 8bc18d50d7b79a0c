import Foundation
import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// `belfry dev --seed FILE`.
@Suite struct SeedTests {
    private static let seed = #"""
        {"schema": "DEFINE SCHEMA RECORD TYPE Todo (title STRING, \#
        priority INT64 QUERYABLE, GRANT READ TO \"_world\");",
         "devices": [{"user": "carol", "deviceID": "carols-phone"}],
         "subscriptions": [
           {"user": "carol", "subscription": {
             "subscriptionID": "urgent", "subscriptionType": "query",
             "query": {"recordType": "Todo", "predicate": "priority > 2"},
             "firesOn": ["create"], "notificationInfo": {"alertBody": "Urgent"}}}],
         "changes": [
           {"operation": "create", "recordType": "Todo", "recordName": "t1",
            "after": {"title": "Milk", "priority": 3}},
           {"operation": "create", "recordType": "Todo", "recordName": "t2",
            "after": {"title": "Bread", "priority": 1}}]}
        """#

    private static func reason(_ text: String) -> String {
        let error = #expect(throws: DevFailure.self) {
            try DevSeed(try JSONValue(parsing: text), name: "seed.json")
        }
        return error?.description ?? ""
    }

    @Test(arguments: [
        (#"{"devises": []}"#, "allowed are"),
        (#"{"devices": {}}"#, "seed.json: devices: "),
        (#"{"devices": [{"user": "carol"}]}"#, "devices[0].deviceID"),
        (#"{"devices": [{"user": "carol", "deviceID": "p", "x": 1}]}"#, "devices[0].x"),
        (#"{"subscriptions": [{"user": "carol"}]}"#, "subscriptions[0].subscription"),
        (
            #"{"subscriptions": [{"user": "c", "database": "own", "subscription": {}}]}"#,
            "subscriptions[0].database"
        ),
        (#"{"changes": [{"operation": "make"}]}"#, "changes[0].operation"),
        (#"{"changes": [{"operation": "create"}]}"#, "changes[0].recordType"),
        (#"{"schema": 7}"#, "schema: a text (DEFINE SCHEMA …) or an object"),
    ]) func `invalid members of a seed are reported with their place`(text: String, part: String) {
        let reason = Self.reason(text)
        #expect(reason.contains(part), "\(reason)")
    }

    @Test func `changes of a seed get the same positions in every run`() throws {
        let first = try DevSeed(try JSONValue(parsing: Self.seed), name: "a")
        let second = try DevSeed(try JSONValue(parsing: Self.seed), name: "b")
        #expect(first.changes == second.changes)
        #expect(Set(first.changes.map(\.text)).count == 2)
    }

    @Test func `a file with a byte order mark is read, and UTF-16 is named as such`() throws {
        let file = try Folder.make().appending(path: "seed.json")
        try Data([0xEF, 0xBB, 0xBF] + Array(Self.seed.utf8)).write(to: file)
        #expect(try DevSeed(file: file.path).changes.count == 2)
        try Data([0xFF, 0xFE] + Self.seed.utf8.flatMap { [$0, 0] }).write(to: file)
        let error = #expect(throws: CommandFailure.self) { try DevSeed(file: file.path) }
        #expect(error.map { "\($0)".contains("is UTF-16: save it as UTF-8") } == true)
    }

    /// Regression: after the sandbox had begun to end, seeding went on to retry its calls for a
    /// minute.
    @Test func `a sandbox that is ended while it is seeded ends soon`() async throws {
        let home = try Folder.make()
        let file = home.appending(path: "seed.json")
        let subscriptions = (0..<1000).map { index in
            #"{"user": "carol", "database": "public", "subscription": {"subscriptionID": "#
                + #""s\#(index)", "subscriptionType": "query", "query": {"recordType": "Todo", "#
                + #""predicate": "n == \#(index)"}, "firesOn": ["create"], "#
                + #""notificationInfo": {}}}"#
        }
        try Data(#"{"subscriptions": [\#(subscriptions.joined(separator: ","))]}"#.utf8)
            .write(to: file)
        let sandbox = try await DevCommandTests.Sandbox.start(
            ["--port", "0", "--seed", file.path], home: home)
        let start = ContinuousClock.now
        let code = await sandbox.end()
        #expect(ContinuousClock.now - start < .seconds(40))
        #expect([0, 1].contains(code))
        #expect(!sandbox.errors.text.contains("refused"), "\(sandbox.errors.text)")
    }

    @Test func `a folder is refused as a seed file`() throws {
        let folder = try Folder.make().path
        let error = #expect(throws: CommandFailure.self) { try DevSeed(file: folder) }
        #expect(error.map { "\($0)".hasSuffix("cannot be read: it is a folder") } == true)
    }

    @Test func `likely mistakes in a seed are reported`() async throws {
        let home = try Folder.make()
        let file = home.appending(path: "seed.json")
        let text = Self.seed.replacing("priority > 2", with: "priority > 2 AND priority < 1")
        try Data(text.utf8).write(to: file)
        let sandbox = try await DevCommandTests.Sandbox.start(
            ["--port", "0", "--seed", file.path], home: home, until: "Sown from")
        let warning = try await sandbox.output.line { $0.hasPrefix("warning: ") }
        #expect(
            warning.hasPrefix("warning: subscriptions[0]: no record")
                && warning.hasSuffix("; join alternatives with OR"), "\(warning)")
        #expect(await sandbox.end() == 0)
    }

    @Test func `a seed is applied at a start, and applying it again changes nothing`()
        async throws
    {
        let home = try Folder.make()
        let file = home.appending(path: "seed.json")
        try Data(Self.seed.utf8).write(to: file)
        let arguments = [
            "--port", "0", "--folder", home.appending(path: "kept").path, "--seed", file.path,
        ]
        let first = try await DevCommandTests.Sandbox.start(
            arguments, home: home, until: "Sown from")
        let sown = try await first.output.line { $0.contains("Sown from") }
        #expect(sown.hasSuffix(": a schema, 1 device, 1 subscription, 2 changes."))
        // The schema of the seed replaces the sandbox's own, which keeps records of this type.
        _ = try await first.output.line { $0 == "Artwork: its records are no longer kept" }
        _ = try await first.output.line { $0.hasPrefix("The gateway got a push for carols-phone") }
        let missed = try await first.output.line { $0.hasPrefix("Todo/t2:") }
        #expect(
            missed.contains("priority is 1, but the condition asks for priority > 2"), "\(missed)")
        #expect(await first.end() == 0)
        let second = try await DevCommandTests.Sandbox.start(
            arguments, home: home, until: "Sown from")
        let again = try await second.output.line { $0.contains("Sown from") }
        #expect(again.hasSuffix("2 changes (2 of them known already)."), "\(again)")
        #expect(second.output.text.contains("is as it was left"))
        #expect(await second.end() == 0)
        #expect(!second.output.text.contains("got a push"))
    }

    @Test func `a seed that the relay refuses ends the start and names the place`() async throws {
        let home = try Folder.make()
        let file = home.appending(path: "seed.json")
        for (text, part) in [
            (
                Self.seed.replacing("priority > 2", with: "priority >"),
                "subscriptions[0]"
            ),
            (
                Self.seed.replacing(#""after": {"title": "Bread""#, with: #""aftr": {"a": 1"#),
                "changes[1]"
            ), (Self.seed.replacing("INT64", with: "INT65"), "schema"),
            ("{", "not JSON at byte"),
        ] {
            try Data(text.utf8).write(to: file)
            let run = try await BuiltBelfry.run(
                ["dev", "--port", "0", "--seed", file.path], environment: ["HOME": home.path])
            #expect(run.code == 1)
            #expect(run.complaint.contains("belfry dev: \(file.path): "), "\(run.complaint)")
            #expect(run.complaint.contains(part), "\(run.complaint)")
            // A sandbox that ends without having been asked to would log an error about its end
            // first.
            #expect(!run.complaint.contains(" error "), "\(run.complaint)")
        }
        let both = try await BuiltBelfry.run(["dev", "--once", "--seed", file.path])
        #expect(both.code == 64)
    }
}
