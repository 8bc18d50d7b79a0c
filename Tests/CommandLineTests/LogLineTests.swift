import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// Text from outside cannot forge lines of the relay's log.
@Suite struct LogLineTests {
    @Test(arguments: [
        ("plain text\n", "plain text\n"), ("", "\n"), ("größer ✓\n", "größer ✓\n"),
        ("a\nb\n", "a\\nb\n"), ("a\r\nb\n", "a\\r\\nb\n"), ("a\u{1b}[2Kb\n", "a\\u{1B}[2Kb\n"),
        ("a\u{2028}b\u{85}c\u{b}\n", "a\\u{2028}b\\u{0085}c\\u{0B}\n"),
        ("a\u{202e}b\u{0}\n", "a\\u{202E}b\\0\n"), ("a\n\n", "a\\n\n"),
    ])
    func `an event is one log line, whatever it contains`(event: String, line: String) {
        #expect(OneLineStream.line(event) == line)
    }

    @Test(arguments: [
        ("plain\n\ttext", "plain\n\ttext", "plain\n\ttext"), ("größer ✓", "größer ✓", "größer ✓"),
        ("a\u{9b}31mb", "a·31mb", "a\\u009b31mb"), ("a\u{202e}b", "a·b", "a\\u202eb"),
        ("a\u{1b}[2Kb\r", "a·[2Kb·", "a\\u001b[2Kb\\u000d"), ("\u{2066}", "·", "\\u2066"),
        ("👩\u{200d}🚀", "👩\u{200d}🚀", "👩\u{200d}🚀"),
    ])
    func `control characters of others are replaced before a terminal shows them`(
        text: String, plain: String, json: String
    ) {
        #expect(ShownText.plain(text) == plain)
        #expect(ShownText.json(text) == json)
    }

    @Test func `the output of a command contains no control characters`() {
        let answer: JSONValue = ["name": "a\u{202e}b", "fields": ["title": "\u{9b}2J"]]
        let json = CommandOutput(answer, .members).text(asJSON: true)
        #expect(json == #"{"name":"a\u202eb","fields":{"title":"\u009b2J"}}"#)
        #expect((try? JSONValue(parsing: json)) == answer)
        #expect(CommandOutput(answer, .json).text(asJSON: false) == json)
        let people = CommandOutput(answer, .members, remark: "\u{2028}").text(asJSON: false)
        #expect(people == "name    a·b\nfields  {\"title\":\"·2J\"}\n\n·")
    }

    @Test func `what is wrong with a command is shown without control characters`() async throws {
        let odd = "a\u{1b}[2K\u{202e}b"
        for arguments in [["serve", "--\(odd)", "1"], ["\(odd)"]] {
            let ending = try await BuiltBelfry.run(arguments)
            #expect(ending.code != 0)
            #expect(ending.complaint.contains("a·[2K·b"), "\(ending.complaint)")
        }
    }

    @Test func `a path with a line break is logged on one line`() async throws {
        let home = try TemporaryStore()
        let gateway = try await SampleGateway.start(in: try Folder.make())
        let relay = try await ServedBelfry.start(
            on: home.path, for: gateway, ["--log-level": "debug"])
        let forged = "2026-01-01T00:00:00+0000 critical belfry: forged"
        let target = "/%0A" + forged.replacing(" ", with: "%20")
        #expect(try await relay.client.call("GET", target).status == 404)
        let name = "a%0A\(forged.replacing(" ", with: "%20"))"
        _ = try await relay.client.call(
            "POST", "/changes/1/iCloud.com.example.Art/\(name)/x", body: "{}")
        #expect(await relay.end() == 0)
        let lines = relay.logged.split(separator: "\n")
        #expect(!lines.contains { $0.hasPrefix(forged) })
        #expect(lines.contains { $0.contains("refused a request") })
        await gateway.simulated.stop()
    }
}
