import Foundation
import Testing

@testable import RelayServer

/// Settings that only have an effect beside another setting.
@Suite struct SettingNeedTests {
    private static func gather(_ settings: [String: String]) async throws -> ConfigurationValues {
        let keys = Dictionary(uniqueKeysWithValues: ConfigurationKeys.all.map { ($0.name, $0) })
        let arguments = try settings.flatMap { name, value in
            [try #require(keys[name], "\(name) is not a setting").flag, value]
        }
        return try await ConfigurationValues.gather(arguments: arguments, environment: [:])
    }

    /// Returns a valid value for a setting.
    private static func value(of name: String) throws -> String {
        let samples = [
            "storage.url": "postgresql://h/d", "backup.url": "s3://bucket", "storage.schema": "a",
        ]
        if let sample = samples[name] { return sample }
        let key = try #require(ConfigurationKeys.all.first { $0.name == name })
        return switch key.kind {
        case .integer(let range): "\(range.lowerBound)"
        case .choice(let words): words[0]
        case .url(let schemes), .page(let schemes), .proxy(let schemes): "\(schemes[0])://a.example"
        case .longSecret(let bytes): String(repeating: "a", count: bytes)
        case .text, .list: "a"
        }
    }

    /// Returns the other setting such that the need is met, or not.
    private static func other(_ need: SettingNeed, isMet: Bool) throws -> [String: String] {
        switch need.condition {
        case .set, .beginning: isMet ? [need.other: try value(of: need.other)] : [:]
        case .notSet: isMet ? [:] : [need.other: try value(of: need.other)]
        case .not(let word):
            // The default need not be given.
            isMet ? [need.other: try another(than: word, of: need.other)] : [need.other: word]
        }
    }

    private static func another(than word: String, of name: String) throws -> String {
        let key = try #require(ConfigurationKeys.all.first { $0.name == name })
        guard case .choice(let words) = key.kind else { return "a.example" }
        return try #require(words.first { $0 != word })
    }

    @Test func `a setting without its prerequisite is reported, and one with it is not`()
        async throws
    {
        for need in SettingNeed.all {
            for name in need.names {
                let own = [name: try Self.value(of: name)]
                let sentence = need.sentence(of: name)
                let idle = try await Self.gather(
                    own.merging(try Self.other(need, isMet: false)) { $1 })
                // If the same setting has an earlier need, that is reported first.
                let earlier = SettingNeed.all.filter { $0.names.contains(name) }
                    .map { $0.sentence(of: name) }
                let told = need.weight == .warned ? idle.idle : Self.refusals(idle)
                #expect(told.contains { earlier.contains($0) }, "\(sentence): \(told)")
                if earlier.first == sentence { #expect(told.contains(sentence), "\(told)") }
                let met = try await Self.gather(
                    own.merging(try Self.other(need, isMet: true)) { $1 })
                #expect(!met.idle.contains(sentence), "\(sentence)")
                #expect(!Self.refusals(met).contains(sentence), "\(sentence)")
            }
        }
    }

    private static func refusals(_ values: ConfigurationValues) -> [String] {
        do {
            try values.requireEffect()
            return []
        } catch {
            return error.problems.map { $0.split(separator: ";").first.map(String.init) ?? "" }
        }
    }

    @Test func `a schema without its database is refused and not ignored`() async throws {
        let values = try await Self.gather(["storage.schema": "a"])
        let error = #expect(throws: ConfigurationError.self) { try values.requireEffect() }
        #expect(
            error?.problems == [
                "storage.schema has no effect without storage.url; set the other one too, or "
                    + "remove this one"
            ])
        #expect(throws: ConfigurationError.self) { try values.store() }
        #expect(try await Self.gather([:]).idle == [])
    }

    @Test func `the table has every setting of a part that depends on another`() {
        let known = Set(SettingNeed.all.flatMap(\.names))
        // A list of shards without a database is refused elsewhere, together with its other errors.
        let free: Set = ["backup.url", "nodes.schemas"]
        for key in ConfigurationKeys.all
        where ["backup.", "nodes."].contains(where: { key.name.hasPrefix($0) }) {
            #expect(known.contains(key.name) != free.contains(key.name), "\(key.name)")
        }
    }

    @Test func `the page names each dependent setting with its prerequisite`() throws {
        let text = try Documentation.text("docs/configuration.md")
        let section = try #require(
            text.components(separatedBy: "## Settings that need another\n").last)
        for need in SettingNeed.all {
            let row = section.split(separator: "\n").first { row in
                need.names.allSatisfy { row.contains("`\($0)`") } && row.contains("`\(need.other)`")
            }
            #expect(row != nil, "\(need.names) need \(need.other)")
        }
    }
}
