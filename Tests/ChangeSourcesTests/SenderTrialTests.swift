import RelayModel
import Testing

@testable import ChangeSources

/// The script that posts a trial webhook, which people paste into their shells.
@Suite struct SenderTrialTests {
    /// Returns the script for a source whose sender signs by this recipe.
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

    /// Returns the lines of that script.
    private func lines(
        header: String = "X-S", prefix: String = "", literal: String = "."
    ) throws -> [String] {
        let trial = try self.trial(header: header, prefix: prefix, literal: literal)
        return try #require(trial).split(separator: "\n").map(String.init)
    }

    @Test func `the script has the sender's header unchanged`() throws {
        #expect(try lines(prefix: "sha256=").contains(#"  -H "X-S: sha256=$signature" \"#))
    }

    @Test func `the shell executes no text of a source`() throws {
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
    func `a source with control characters gets no script`(literal: String) throws {
        #expect(try trial(literal: literal) == nil)
        #expect(try trial(literal: "a\r\n\tb") != nil)
    }

    /// Returns a source with this mapping, and the trial request with its body and headers.
    private func posted(
        _ preset: SourcePreset, _ mapping: String
    ) throws -> (source: ChangeSource, request: WebhookRequest) {
        let source = try source(preset.rawValue, mapping: mapping)
        let body = TrialBody(of: source, schema: "public", table: "todos", isBinary: false)
        var headers: WebhookHeaders = [:]
        for (name, value) in body.headers { headers.append(name, value) }
        if preset == .appwrite {
            headers.append(
                "X-Appwrite-Webhook-Events",
                "databases.trial.collections.todos.documents.trial-1.create")
        }
        return (source, webhook(body.json.text, headers: headers))
    }

    /// Leaves out Minapp: its body is a signed token, and the claims in it are read in the same
    /// way.
    @Test(arguments: SourcePreset.allCases.filter { $0 != .minapp })
    func `a trial change has the columns that the mapping reads`(preset: SourcePreset) throws {
        let shape =
            preset == .custom
            ? #"""
            , "table": {"pointer": "/of/table"}, "body": {"items": "/list", "after": "/row",
                "operation": {"pointer": "/did"}, "operations": {"made": "create"}}
            """# : ""
        // In the relay's own format, the body itself has the names of records.
        let key = preset == .belfry ? "" : #""key": ["sku", "line"],"#
        let (source, request) = try posted(
            preset,
            #"""
            {\#(key) "columns": {"line": "integer", "title": "number"},
             "zone": {"column": "area"}, "owner": {"column": "user_id"},
             "readers": {"header": "X-Readers"}, "version": {"column": "rev"}\#(shape)}
            """#)
        let items = decoded(source, request)
        let item = try #require(items.first)
        #expect(items.count == 1)
        #expect(item.hasPrefix("create ") || item.hasPrefix("update "), "\(item)")
        let name = key.isEmpty ? "trial-1" : "trial-1,1"
        #expect(item.contains("/\(name) zone trial private trial-user "), "\(item)")
        #expect(item.contains(" readers trial-user "), "\(item)")
        #expect(item.contains(" version 1"), "\(item)")
    }

    @Test func `a trial change has what the mapping reads from the body`() throws {
        let (source, request) = try posted(
            .hasura,
            #"""
            {"owner": {"pointer": "/event/session_variables/x-hasura-user-id"},
             "columns": {"id": "uuid"}}
            """#)
        let item = try #require(decoded(source, request).first)
        #expect(
            item.hasPrefix(
                "create todos/6ba7b810-9dad-11d1-80b4-00c04fd430c8 private trial-user "), "\(item)")
    }

    @Test func `a trial of a constant table uses its own key`() throws {
        let (source, request) = try posted(
            .custom,
            #"""
            {"table": {"constant": "Order"}, "keys": {"Order": ["number"], "todos": ["none"]},
             "body": {"operation": {"header": "X-Event"}, "after": ""}}
            """#)
        let item = try #require(decoded(source, request).first)
        #expect(item.hasPrefix("create Order/trial-1 "), "\(item)")
    }
}
