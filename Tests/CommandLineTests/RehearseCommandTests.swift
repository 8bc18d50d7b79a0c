import Foundation
import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// `belfry rehearse` in a sandbox; docs/rehearse.md shows the same output.
@Suite struct RehearseCommandTests {
    @Test func `the sandbox rehearses as the page about rehearse shows`() async throws {
        let home = try Folder.make()
        let sandbox = try await DevCommandTests.Sandbox.startOfPages(home: home)
        for arguments in [
            ["Todo", "t1", "-f", "priority=1", "-f", "done=false"],
            ["Todo", "t2", "-f", "priority=5", "-f", "done=false"],
            ["Todo", "t3", "-f", "priority=2", "-f", "done=false"],
        ] {
            let run = try await Self.belfry(["trigger", "create"] + arguments, home)
            #expect(run.code == 0, "\(run.complaint)")
        }
        let page = Self.masked(
            try String(
                contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                    .appending(path: "../../docs/rehearse.md"), encoding: .utf8))
        for question in [
            ["--record-type", "Todo", "priority > 4"],
            ["--subscription", "urgent", "--record-type", "Todo", "priority > 1"],
        ] {
            let run = try await Self.belfry(["rehearse", "--user", "carol"] + question, home)
            #expect(run.code == 0, "\(run.complaint)")
            let words = question.map { $0.contains(" ") ? "'\($0)'" : $0 }
            let shown =
                "$ belfry rehearse --user carol \(words.joined(separator: " "))\n\(run.output)"
            #expect(
                page.contains(Self.masked(shown).trimmingCharacters(in: .newlines)), "\(shown)")
        }
        let draft = home.appending(path: "draft.json")
        try Data(
            """
            {"subscriptionID": "urgent", "subscriptionType": "query",
             "query": {"recordType": "Todo"}, "firesOn": ["create"],
             "notificationInfo": {"alertBody": "Todo"}}
            """.utf8
        ).write(to: draft)
        let compared = try await Self.belfry(
            ["rehearse", "--user", "carol", "--draft", draft.path, "--json"], home)
        let answer = try JSONValue(parsing: compared.output)
        #expect(answer.value(at: ["change", "added"]) == 2, "\(compared.output)")
        try await expectRefusals(home, draft)
        _ = await sandbox.end()
    }

    @Test func `changes from a file are judged without a relay`() async throws {
        let home = try Folder.make()
        let file = home.appending(path: "changes.ndjson")
        try Data(
            """
            {"operation":"create","recordType":"Todo","recordName":"t1","after":{"priority":5}}
            {"operation":"create","recordType":"Todo","recordName":"t2","after":{"priority":1}}\r
            \r
            {"operation":"create","recordType":"Todo","recordName":"t3","after":{"priority":9},\
            "readers":["dave"]}
            {"operation":"update","recordType":"Todo","recordName":"t1","after":{"priority":7}}

            """.utf8
        ).write(to: file)
        let asked = [
            "rehearse", "--user", "carol", "--file", file.path, "--record-type", "Todo",
            "priority > 4",
        ]
        let run = try await Self.belfry(asked + ["--json"], home)
        let answer = try JSONValue(parsing: run.output)
        #expect(answer.value(at: ["fired"]) == 2, "\(run.output) \(run.complaint)")
        #expect(answer.value(at: ["lookedAt", "changes"]) == 3)
        #expect(answer.value(at: ["lookedAt", "end"]) == "file")
        #expect(answer.value(at: ["byOperation", "update"]) == 1)
        #expect(answer.value(at: ["examples", "0", "position"]) == "4")
        #expect(
            answer.value(at: ["examples", "0", "devices", "0", "payload", "aps", "alert"])
                == "Todo")
        let text = try await Self.belfry(asked, home)
        #expect(text.output.contains("That is the whole file."), "\(text.output)")
        let both = try await Self.belfry(asked + ["--subscription", "urgent"], home)
        #expect(both.complaint.contains("--file judges the whole file"))
        let wrong = try await Self.belfry(asked.dropLast() + ["priority >"], home)
        #expect(wrong.complaint.contains("subscription.query"), "\(wrong.complaint)")
        try Data("{\"operation\":\"create\"}\n".utf8).write(to: file)
        let refused = try await Self.belfry(asked, home)
        #expect(refused.code == 66)
        #expect(refused.complaint.contains("changes.ndjson:1: "), "\(refused.complaint)")
    }

    @Test func `progress is reported after each hundred thousand changes of a file`() {
        #expect(RehearseCommand.remark(from: 0, to: 256) == nil)
        #expect(RehearseCommand.remark(from: 99_900, to: 99_999) == nil)
        #expect(RehearseCommand.remark(from: 99_900, to: 100_156) == "(100000 changes so far)\n")
        #expect(RehearseCommand.remark(from: 100_156, to: 100_412) == nil)
        #expect(RehearseCommand.remark(from: 0, to: 300_000) == "(300000 changes so far)\n")
    }

    private func expectRefusals(_ home: URL, _ draft: URL) async throws {
        for (arguments, complaint) in [
            ([], "name what to rehearse"),
            (["--draft", draft.path, "--record-type", "Todo"], "--draft has its own"),
            (["priority > 1"], "--record-type is needed: the type of the records"),
            (["--draft", "/nowhere"], "there is no file /nowhere"),
            (["--subscription", "none"], "there is no subscription \"none\" of \"carol\""),
            (["--record-type", "Todo", "priority >"], "subscription.query"),
            (["--subscription", "urgent", "--changes", "0"], "--changes must be from 1 to"),
        ] as [([String], String)] {
            let refused = try await Self.belfry(["rehearse", "--user", "carol"] + arguments, home)
            #expect(refused.code != 0)
            #expect(refused.complaint.contains(complaint), "\(refused.complaint)")
        }
    }

    private static func belfry(
        _ arguments: [String], _ home: URL
    ) async throws -> BuiltBelfry.Ending {
        try await BuiltBelfry.run(arguments, environment: ["HOME": home.path])
    }

    /// Replaces what differs from run to run in a text, such as times, with fixed placeholders.
    private static func masked(_ text: String) -> String {
        text.replacing(#/\d{4}-\d\d-\d\dT[\d:.]+Z/#, with: "T")
            .replacing(#/by (day|hour) .*/#, with: "when")
            .replacing(#/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/#, with: "U")
    }
}
