import RelayModel
import Testing

@testable import ChangeSources

/// The script that posts a webhook to try, which people paste into their shells.
@Suite struct SenderTrialTests {
    /// The script for a source whose sender signs by this recipe.
    private func trial(
        header: String = "X-S", prefix: String = "", literal: String = "."
    ) throws -> String? {
        let verification: JSONValue = [
            "scheme": "signature", "header": .string(header), "prefix": .string(prefix),
            "algorithm": "hmac-sha256", "output": "hex",
            "parts": ["body", ["literal": .string(literal)]],
        ]
        let given: JSONObject = [
            "name": "shop", "preset": "belfry", "verification": verification,
        ]
        let source = try SourceDefinition(given, over: nil) {
            Array(repeating: 7, count: $0)
        }.source
        let guide = SenderGuide(to: source, at: "http://relay/changes/1/c/development/shop")
        return guide.trial
    }

    /// The lines of that script.
    private func lines(
        header: String = "X-S", prefix: String = "", literal: String = "."
    ) throws -> [String] {
        let trial = try self.trial(header: header, prefix: prefix, literal: literal)
        return try #require(trial).split(separator: "\n").map(String.init)
    }

    @Test func `a script has the sender's header as it is`() throws {
        #expect(try lines(prefix: "sha256=").contains(#"  -H "X-S: sha256=$signature" \"#))
    }

    @Test func `nothing that a source says is obeyed by the shell`() throws {
        let literal = try lines(literal: "a'\u{301};id;'\u{301}")
        let quoted = #"literal1='a'\''"# + "\u{301};id;" + #"'\''"# + "\u{301}'"
        #expect(literal.contains(quoted), "\(literal)")
        let prefix = try lines(prefix: "\"\u{301};id;`\u{301}id`")
        let escaped = #"  -H "X-S: \""# + "\u{301};id;" + #"\`"# + "\u{301}id" + #"\`$signature" \"#
        #expect(prefix.contains(escaped), "\(prefix)")
        let former = try lines(prefix: "!rm")
        #expect(former.contains("prefix='!rm'"), "\(former)")
        #expect(former.contains(#"  -H "X-S: $prefix$signature" \"#), "\(former)")
        let header = try lines(header: "X-`id`")
        #expect(header.contains(#"  -H 'X-`id`'": $signature" \"#), "\(header)")
    }

    @Test(arguments: ["\u{3}\nid\n", "\u{1B}[201~\nid\n", "\u{7F}"])
    func `there is no script with characters that a terminal obeys`(literal: String) throws {
        #expect(try trial(literal: literal) == nil)
        #expect(try trial(literal: "a\r\n\tb") != nil)
    }
}
