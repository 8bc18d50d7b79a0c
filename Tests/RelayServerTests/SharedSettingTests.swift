import StoragePostgreSQL
import Testing

@testable import RelayServer

/// Which settings the relays of one store should have in common, and what they publish of them.
@Suite struct SharedSettingTests {
    private static func agreed(_ arguments: [String]) async throws -> AgreedSettings {
        try RelayConfiguration(
            try await ConfigurationValues.gather(arguments: arguments, environment: [:])
        ).agreed
    }

    @Test func `the list of a relay's own settings is correct and documented`() throws {
        let names = Set(ConfigurationKeys.all.map(\.name))
        #expect(ConfigurationKey.own.subtracting(names) == [])
        let text = try Documentation.text("docs/postgresql-engine.md")
        for name in ConfigurationKey.own { #expect(text.contains("`\(name)`"), "\(name)") }
        for part in ConfigurationKey.ownParts {
            #expect(names.contains { $0.hasPrefix(part) })
            #expect(text.contains("`\(part)…`"), "\(part)")
        }
    }

    @Test func `no secret and no path of a machine is published`() async throws {
        let shown = try await Self.agreed([
            "--admin-token", "hush-hush-hush-hush-hush", "--apns-proxy", "http://u:hush@proxy",
            "--http-port", "1", "--secrets-key", String(repeating: "ab", count: 32),
        ]).values
        #expect(!shown.values.contains { $0.contains("hush") || $0.contains("abab") })
        #expect(shown["http.port"] == nil && shown["admin.token"] == nil)
        #expect(shown["retention.logHours"] != nil && shown["limits.operations"] != nil)
        #expect(shown["signIn.url"] == "")
        // A relay with only default settings publishes as many.
        #expect(try await Self.agreed([]).values.count == shown.count)
    }

    @Test func `the list of shards is compared without its order`() async throws {
        let url = ["--storage-url", "postgresql://db/app", "--storage-schema", "a"]
        let one = try await Self.agreed(url + ["--nodes-schemas", "a,b"])
        let same = try await Self.agreed(url + ["--nodes-schemas", "b, a"])
        let longer = try await Self.agreed(url + ["--nodes-schemas", "a,b,c"])
        #expect(one.differences(of: same) == [])
        #expect(one.differences(of: longer).map(\.name) == ["nodes.schemas"])
    }

    @Test(
        arguments: [
            (["a", "b"], "a", []),
            ([], "a", []),
            (["a", "b"], "c", ["its own"]),
            (["a", "b", "a"], "a", ["a is named more than once"]),
            (["a", "B", "pg_x", ""], "a", ["\"\" is", "\"B\" is", "\"pg_x\" is"]),
            ((0...64).map { "s\($0)" }, "s1", ["at most 64"]),
        ] as [([String], String, [String])])
    func `an invalid list of shards is refused at the start`(
        schemas: [String], own: String, words: [String]
    ) {
        var settings = NodeSettings()
        settings.schemas = schemas
        let problems = settings.problems(of: own, at: "postgresql://db/app")
        #expect(problems.count == words.count)
        for word in words {
            let part = word == "its own" ? "own schema \(own)" : word
            #expect(problems.contains { $0.contains(part) }, "\(word): \(problems)")
        }
        settings.advertised = .none
        let isLone = schemas.isEmpty
        #expect(settings.problems(of: own, at: nil).count == words.count + (isLone ? 0 : 2))
    }

    @Test func `different spellings of the same settings are equal`() async throws {
        let one = try await Self.agreed([
            "--retention-log-hours", "0024", "--limits-denied-record-types", "B, A",
            "--apns-url", "https://Gateway.example/",
        ])
        let other = try await Self.agreed([
            "--retention-log-hours", "24", "--limits-denied-record-types", "A,B",
            "--apns-development-url", "https://gateway.example",
            "--apns-production-url", "https://gateway.example",
        ])
        #expect(one.differences(of: other) == [])
    }

    @Test func `differences are reported with both values, including the gateway`()
        async throws
    {
        let one = try await Self.agreed(["--retention-log-hours", "24"])
        let other = try await Self.agreed(["--apns-url", "https://gateway.example"])
        let names = one.differences(of: other).map(\.name)
        #expect(names == ["apns.development.url", "apns.production.url", "retention.logHours"])
        #expect(
            one.differences(of: other).first?.description
                == "apns.development.url is https://gateway.example there and "
                + "https://api.sandbox.push.apple.com here")
    }

    @Test func `a long value is shown by its digest`() async throws {
        let list = (0..<50).map { "Type\($0)" }.joined(separator: ",")
        let shown = try await Self.agreed(["--limits-denied-record-types", list])
        let value = shown.values["limits.deniedRecordTypes"] ?? ""
        #expect(value.hasPrefix("a text of ") && value.utf8.count < 60, "\(value)")
        let other = try await Self.agreed(["--limits-denied-record-types", list + ",More"])
        #expect(shown.differences(of: other).map(\.name) == ["limits.deniedRecordTypes"])
    }

    @Test func `the gateways must be equal, and secrets are not compared`() {
        let byName = Dictionary(
            uniqueKeysWithValues: ConfigurationKeys.all.map { ($0.name, $0.sharing) })
        #expect(
            Set(byName.filter { $0.value == .required }.keys)
                == ["apns.url", "apns.development.url", "apns.production.url"])
        #expect(ConfigurationKeys.all.filter(\.isSecret).allSatisfy { $0.sharing == .own })
        #expect(byName["storage.dedupeHours"] == .alike && byName["storage.path"] == .own)
    }
}
