import ArgumentParser
import Foundation
import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// `belfry listen` against a sandbox.
@Suite struct ListenCommandTests {
    /// Starts `belfry listen` against the sandbox in `home`; returns the process and its output.
    private static func listen(_ arguments: [String], home: URL) async throws -> (Child, LogLines) {
        let child = Child(["listen"] + arguments, environment: ["HOME": home.path])
        let output = LogLines()
        try child.run(
            input: .nullDevice, output: output.pipe.fileHandleForWriting,
            error: FileHandle.nullDevice)
        _ = try await output.line { $0.hasPrefix("(listening to iCloud.com.example.Art/") }
        return (child, output)
    }

    /// Starts a sandbox in which carol has a phone and subscribes to urgent to-dos.
    private static func sandbox(
        home: URL, folder: URL
    ) async throws -> DevCommandTests.Sandbox {
        let seed = home.appending(path: "seed.json")
        try Data(
            """
            {"devices": [{"user": "carol", "deviceID": "carols-phone"}],
             "subscriptions": [{"user": "carol", "subscription": {
               "subscriptionID": "urgent", "subscriptionType": "query",
               "query": {"recordType": "Todo", "predicate": "priority > 2"},
               "firesOn": ["create"], "notificationInfo": {"alertBody": "Urgent"}}}]}
            """.utf8
        ).write(to: seed)
        return try await DevCommandTests.Sandbox.start(
            ["--port", "0", "--folder", folder.path, "--seed", seed.path], home: home,
            until: "Sown from")
    }

    private static func trigger(_ name: String, _ priority: Int, home: URL) async throws {
        let run = try await BuiltBelfry.run(
            ["trigger", "create", "Todo", name, "-f", "priority=\(priority)"],
            environment: ["HOME": home.path])
        #expect(run.code == 0, "\(run.complaint)")
    }

    @Test func `changes, matches and pushes are shown even after the relay restarts`()
        async throws
    {
        let home = try Folder.make()
        let folder = home.appending(path: "kept")
        let first = try await Self.sandbox(home: home, folder: folder)
        let (listener, output) = try await Self.listen([], home: home)
        try await Self.trigger("t1", 3, home: home)
        _ = try await output.line {
            $0.contains("push    Todo/t1 (create): to carols-phone of carol by urgent: Urgent")
        }
        let lines = output.text.split(separator: "\n").map { $0.dropFirst(10) }
        #expect(lines.contains("change  Todo/t1 (create): fired 1"), "\(output.text)")
        #expect(lines.contains("match   Todo/t1 (create): urgent of carol"), "\(output.text)")
        #expect(await first.end() == 0)
        _ = try await output.line { $0 == "(the relay does not answer; trying again)" }
        let second = try await Self.sandbox(home: home, folder: folder)
        _ = try await output.line { $0 == "(the relay answers again)" }
        try await Self.trigger("t2", 1, home: home)
        _ = try await output.line { $0.hasSuffix("change  Todo/t2 (create): fired 0") }
        listener.signal(SIGTERM)
        _ = await listener.ended()
        #expect(await second.end() == 0)
    }

    @Test func `a tail continues after the relay restarts`() async throws {
        let home = try Folder.make()
        let folder = home.appending(path: "kept")
        let first = try await Self.sandbox(home: home, folder: folder)
        try await Self.trigger("before", 1, home: home)
        let child = Child(
            ["changes", "tail", "--lines", "1", "-c", "iCloud.com.example.Art"],
            environment: ["HOME": home.path])
        let output = LogLines()
        let errors = LogLines()
        try child.run(
            input: .nullDevice, output: output.pipe.fileHandleForWriting, error: errors.pipe)
        _ = try await output.line { $0.hasSuffix("create  Todo/before") }
        #expect(await first.end() == 0)
        _ = try await errors.line { $0 == "(the relay does not answer; trying again)" }
        let second = try await Self.sandbox(home: home, folder: folder)
        try await Self.trigger("after", 1, home: home)
        _ = try await output.line { $0.hasSuffix("create  Todo/after") }
        _ = try await errors.line { $0 == "(the relay answers again)" }
        #expect(await second.end() == 0)
        // A relay that kept nothing counts its positions from the start again.
        let third = try await Self.sandbox(home: home, folder: home.appending(path: "other"))
        _ = try await errors.line {
            $0 == "(the log now ends before the changes that were shown; starting again)"
        }
        try await Self.trigger("elsewhere", 1, home: home)
        _ = try await output.line { $0.hasSuffix("create  Todo/elsewhere") }
        child.signal(SIGTERM)
        _ = await child.ended()
        #expect(await third.end() == 0)
    }

    @Test(arguments: [
        ["listen"], ["changes", "tail", "--lines", "1", "-c", "iCloud.com.example.Art"],
    ]) func `a command whose reader has gone ends with the next line`(
        arguments: [String]
    ) async throws {
        let home = try Folder.make()
        let sandbox = try await Self.sandbox(home: home, folder: home.appending(path: "kept"))
        try await Self.trigger("before", 1, home: home)
        // The reader takes one line, closes its end of the pipe, and only then prints the line.
        let child = Child(
            arguments, pipedInto: "{ read -r line; exec <&-; echo \"$line\"; }",
            environment: ["HOME": home.path])
        let output = LogLines()
        let errors = LogLines()
        try child.run(
            input: .nullDevice, output: output.pipe.fileHandleForWriting, error: errors.pipe)
        _ = try await output.line { !$0.isEmpty }
        try await Self.trigger("after", 1, home: home)
        #expect(await child.ended() == 0)
        #expect(!errors.text.contains("Broken pipe"), "\(errors.text)")
        #expect(await sandbox.end() == 0)
    }

    @Test func `pushes are posted to an endpoint exactly as composed`() async throws {
        let home = try Folder.make()
        let sandbox = try await Self.sandbox(home: home, folder: home.appending(path: "kept"))
        // Any HTTP endpoint will do: here the sandbox's own health check, which refuses a POST.
        let address = try #require(
            sandbox.output.text.firstMatch(of: /http:\/\/127\.0\.0\.1:[0-9]+/)
        ).0
        let (listener, output) = try await Self.listen(
            ["--only", "push", "--forward-to", "\(address)/healthz"], home: home)
        try await Self.trigger("t1", 3, home: home)
        _ = try await output.line { $0.hasPrefix("(posted to \(address)/healthz: 405") }
        #expect(!output.text.contains("change  "))
        listener.signal(SIGTERM)
        _ = await listener.ended()
        #expect(await sandbox.end() == 0)
    }

    @Test func `an endpoint that nobody listens at is reported in plain words`() async throws {
        let forwarding = try PushForwarding("http://127.0.0.1:1/pushes")
        let told = await forwarding.post([:], [:])
        #expect(told == "not posted to http://127.0.0.1:1/pushes: Connection refused")
    }

    @Test func `a posted event names the container`() {
        #expect(
            PushForwarding.body(
                ["kind": "push"], ["environment": "development", "container": "c"])
                == ["kind": "push", "container": "c", "environment": "development"])
    }

    @Test(arguments: [
        (["--database", "x"], "events come from a running relay"),
        (["--forward-to", "localhost"], "is not a URL"),
        (["--forward-to", "localhost:3000/a"], "; did you mean http://localhost:3000/a?"),
        (["--forward-to", "http://127.0.0.1:99999/"], "is not a URL"),
        (["--forward-to", "http://a/", "--only", "match"], "but --only leaves them out"),
        (["--only", "pushes"], "pushes"),
    ]) func `invalid and contradictory options are refused`(
        arguments: [String], part: String
    ) async throws {
        let run = try await BuiltBelfry.run(["listen"] + arguments)
        #expect(run.code == 64)
        #expect(run.complaint.contains(part), "\(run.complaint)")
    }

    @Test func `a missing relay is reported at once`() async throws {
        let home = try Folder.make()
        let run = try await BuiltBelfry.run(["listen"], environment: ["HOME": home.path])
        #expect(run.code == 78)
        let gone = try await BuiltBelfry.run(
            ["listen", "-c", "c", "--url", "http://127.0.0.1:1", "--admin-token", "t"],
            environment: ["HOME": home.path])
        #expect(gone.code == 69)
    }
}
