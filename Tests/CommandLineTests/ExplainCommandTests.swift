import Foundation
import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// `belfry explain` in a sandbox; docs/explain.md shows the same output.
@Suite struct ExplainCommandTests {
    @Test func `the sandbox explains as the page about explain shows`() async throws {
        let home = try Folder.make()
        let sandbox = try await DevCommandTests.Sandbox.startOfPages(home: home)
        for arguments in [
            ["Todo", "t1", "-f", "priority=1", "-f", "done=false"],
            [
                "Todo", "t2", "-f", "priority=5", "-f", "done=false", "--origin-device",
                "carols-phone",
                "--origin-user", "carol",
            ],
        ] {
            let run = try await BuiltBelfry.run(
                ["trigger", "create"] + arguments, environment: ["HOME": home.path])
            #expect(run.code == 0, "\(run.complaint)")
        }
        let page = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../../docs/explain.md"), encoding: .utf8)
        for question in [
            ["--record", "Todo/t1", "--subscription", "urgent", "--user", "carol"],
            ["--record", "Todo/t2", "--user", "carol"],
            ["--subscription", "urgent", "--user", "carol"],
        ] {
            var run = try await BuiltBelfry.run(
                ["explain"] + question, environment: ["HOME": home.path])
            // The gateway's answer may still be on its way.
            while run.output.contains("its delivery is not settled yet") {
                run = try await BuiltBelfry.run(
                    ["explain"] + question, environment: ["HOME": home.path])
            }
            #expect(run.code == 0, "\(run.complaint)")
            let shown = "$ belfry explain \(question.joined(separator: " "))\n\(run.output)"
            #expect(
                Self.masked(page).contains(
                    Self.masked(shown).trimmingCharacters(in: .newlines)), "\(shown)")
        }
        let refused = try await BuiltBelfry.run(
            ["explain", "--change", "4711", "--user", "carol"], environment: ["HOME": home.path])
        #expect(refused.complaint.contains("there is no change at position 4711"))
        _ = await sandbox.end()
    }

    /// Replaces what differs from run to run in a text, such as times, with fixed placeholders.
    private static func masked(_ text: String) -> String {
        text.replacing(#/\d{4}-\d\d-\d\dT[\d:.]+Z/#, with: "T")
            .replacing(#/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/#, with: "U")
    }
}
