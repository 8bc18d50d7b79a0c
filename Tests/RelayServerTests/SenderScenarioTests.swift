import Foundation
import RelayModel
import RelayTestKit
import Testing

/// The snippets that `sources show` prints and the programs in docs/webhook-signing.md, run
/// unchanged against a relay.
@Suite(.timeLimit(.minutes(30))) struct SenderScenarioTests {
    /// A programming language and the command that runs it.
    struct Language: Sendable, CustomTestStringConvertible {
        let name: String
        let command: String
        let suffix: String

        var testDescription: String { name }
        var isInstalled: Bool {
            (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
                FileManager.default.isExecutableFile(atPath: "\($0)/\(command)")
            }
        }
    }

    static let bash = Language(name: "bash", command: "bash", suffix: "sh")
    static let python = Language(name: "python", command: "python3", suffix: "py")
    static let javascript = Language(name: "javascript", command: "node", suffix: "mjs")
    static let php = Language(name: "php", command: "php", suffix: "php")
    static let ruby = Language(name: "ruby", command: "ruby", suffix: "rb")

    /// Runs a program and returns what it prints, including its errors.
    private func run(
        _ text: String, _ language: Language, _ environment: [String: String]
    ) async throws -> String {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent()
        let file = folder.appending(path: "program.\(language.suffix)")
        let output = folder.appending(path: "output")
        try Data(text.utf8).write(to: file)
        try Data().write(to: output)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [language.command, file.path]
        process.environment = ProcessInfo.processInfo.environment
            .merging(environment) { _, given in given }
        let handle = try FileHandle(forWritingTo: output)
        process.standardOutput = handle
        process.standardError = handle
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            process.terminationHandler = { _ in done.resume() }
            do { try process.run() } catch { done.resume() }
        }
        return try String(contentsOf: output, encoding: .utf8)
    }

    // MARK: The documentation

    private func example(_ language: Language) async throws {
        let text = try Documentation.text("docs/webhook-signing.md")
        let start = try #require(text.range(of: "```\(language.name)\n"))
        let end = try #require(text[start.upperBound...].range(of: "\n```"))
        let program = String(text[start.upperBound..<end.lowerBound]) + "\n"
        try await RunningRelay.with { relay in
            let place = relay.container.path + "/sources/signed"
            let made = try await relay.client.administer("PUT", place, ["preset": "belfry"])
            guard case .string(let secret)? = made.json.value(at: ["secret"]) else {
                Issue.record("\(made.json.text)")
                return
            }
            let url =
                "\(relay.client.url)/changes/1/\(relay.container.key.container)/development/signed"
            let printed = try await run(
                program, language,
                ["BELFRY_SOURCE_URL": url, "BELFRY_SOURCE_SECRET": secret])
            #expect(printed.contains(#""status":"appended""#), "\(printed)")
        }
    }

    @Test func `the example in shell posts a change`() async throws {
        try await example(Self.bash)
    }

    @Test(.enabled(if: python.isInstalled, "python3 is not installed; deploy/test installs it"))
    func `the example in Python posts a change`() async throws {
        try await example(Self.python)
    }

    @Test(.enabled(if: javascript.isInstalled, "node is not installed"))
    func `the example in JavaScript posts a change`() async throws {
        try await example(Self.javascript)
    }

    @Test(.enabled(if: php.isInstalled, "php is not installed; deploy/test installs php-cli"))
    func `the example in PHP posts a change`() async throws {
        try await example(Self.php)
    }

    @Test(.enabled(if: ruby.isInstalled, "ruby is not installed; deploy/test installs it"))
    func `the example in Ruby posts a change`() async throws {
        try await example(Self.ruby)
    }

    // MARK: What sources show tells

    /// A source for each kind of verification.
    ///
    /// Its definition includes the secret if the sender makes it.
    private static let sources: [(name: String, definition: String)] =
        [
            "belfry", "debezium", "supabase", "hasura", "cloudevents", "parse", "mongodb",
            "dynamodb", "directus", "strapi", "wal2json", "cloudkit", "postgres",
        ].map { ($0, #"{"preset":"\#($0)"}"#) } + [
            ("minapp", #"{"preset":"minapp","mapping":{"table":{"constant":"Todo"}}}"#),
            ("appwrite", #"{"preset":"appwrite","verification":{"secrets":[{"secret":"k y"}]}}"#),
            ("airtable", #"{"preset":"airtable","verification":{"secrets":[{"secret":"AAEC"}]}}"#),
            ("open", #"{"preset":"belfry","verification":{"scheme":"none"}}"#),
            ("bearer", #"{"preset":"belfry","verification":{"scheme":"bearer"}}"#),
            (
                "parts",
                """
                {"preset": "belfry", "verification": {"scheme": "signature", "header": "X-Sign",
                 "algorithm": "hmac-sha256", "output": "hex", "keyEncoding": "hex",
                 "prefix": "t$=", "parts": [{"header": "X-Time"}, {"literal": "it's."}, "body"],
                 "timestampHeader": "X-Time", "secrets": [{"secret": "00ff10"}]}}
                """
            ),
            (
                "binary",
                #"""
                {"preset": "cloudevents", "verification": {"scheme": "signature",
                 "header": "X-Sign", "algorithm": "hmac-sha256", "output": "hex", "parts": [
                 {"header": "ce-specversion"}, {"literal": "\n"}, {"header": "ce-type"},
                 {"literal": "\n"}, {"header": "ce-source"}, {"literal": "\n"},
                 {"header": "ce-id"}, {"literal": "\n"}, {"header": "ce-subject"},
                 {"literal": "\n"}, "body"]}}
                """#
            ),
            (
                "digest",
                """
                {"preset": "belfry", "verification": {"scheme": "signature", "header": "X-Sign",
                 "algorithm": "sha256", "output": "base64", "parts": ["body", "secret"]}}
                """
            ),
        ]

    @Test func `the snippets of a source post a change unmodified`() async throws {
        try await RunningRelay.with { relay in
            for (name, definition) in Self.sources {
                let place = relay.container.path + "/sources/\(name)"
                let given = try JSONValue(parsing: definition)
                let made = try await relay.client.administer("PUT", place, given)
                let shown = try await relay.client.administer("GET", place)
                #expect(shown.json.value(at: ["secret"]) == nil)
                let secret =
                    made.json.value(at: ["secret"])
                    ?? given.value(at: ["verification", "secrets", "0", "secret"])
                guard case .string(let told)? = made.json.value(at: ["sender", "trial"]),
                    case .string(let again)? = shown.json.value(at: ["sender", "trial"])
                else {
                    Issue.record("\(name): \(made.json.text)")
                    continue
                }
                var environment: [String: String] = [:]
                if case .string(let text)? = secret {
                    #expect(!shown.json.text.contains(text), "\(name)")
                    environment["BELFRY_SOURCE_SECRET"] = text
                }
                for script in name == "appwrite" || name == "airtable" ? [again] : [told, again] {
                    let printed = try await run(script, Self.bash, environment)
                    let isTaken = ["appended", "duplicate"].contains {
                        printed.contains(#""status":"\#($0)""#)
                    }
                    #expect(isTaken || printed == #"{"success":true}"#, "\(name): \(printed)")
                }
            }
        }
    }
}
