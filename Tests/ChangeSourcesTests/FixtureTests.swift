import Foundation
import RelayModel
import Testing

@testable import ChangeSources

/// Every file in `Fixtures` has the bodies of one preset, and the expected changes of each.
///
/// With `BELFRY_UPDATE_GOLDEN=1` the files are rewritten with the actual changes; review the
/// difference.
@Suite struct FixtureTests {
    @Test(arguments: SourcePreset.allCases)
    func `every body of a preset's fixtures is read as the file says`(
        preset: SourcePreset
    ) throws {
        let file = FixtureFile(preset: preset)
        let cases = try file.read()
        #expect(!cases.isEmpty)
        var results: [[String]] = []
        for fixture in cases {
            let source = try source(
                preset.rawValue, mapping: fixture.mapping ?? Self.mapping(preset),
                more: fixture.more.map { ", \($0)" } ?? "")
            let actual = decoded(source, fixture.request)
            results.append(actual)
            if !FixtureFile.rewrites { #expect(actual == fixture.expected, "\(fixture.name)") }
        }
        if FixtureFile.rewrites { try file.write(cases, results) }
    }

    /// Returns the minimal mapping of a preset.
    static func mapping(_ preset: SourcePreset) -> String {
        switch preset {
        case .minapp: #"{"table": {"constant": "orders"}}"#
        case .custom:
            """
            {"table": {"pointer": "/collection"}, "body": {"operation": {"pointer": "/action"},
             "before": "/old", "after": "/record"}}
            """
        default: "{}"
        }
    }
}

/// One body of a fixture file.
struct Fixture {
    var name = ""
    var mapping: String?
    var more: String?
    var headers: [(name: String, value: String)] = []
    var body: [String] = []
    var expected: [String] = []

    var request: WebhookRequest {
        var request = webhook(body.joined(separator: "\n"))
        for (name, value) in headers {
            if name == "Method" {
                request.method = value
            } else {
                request.headers.append(name, value)
            }
        }
        return request
    }
}

/// A file of bodies.
///
/// Each has `## name`, lines with `mapping:`, `more:` and `header:`, then `body:` and the body,
/// and `is:` with one line for each item.
struct FixtureFile {
    static let rewrites = ProcessInfo.processInfo.environment["BELFRY_UPDATE_GOLDEN"] == "1"

    let url: URL

    init(preset: SourcePreset) {
        url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Fixtures/\(preset.rawValue).cases")
    }

    func read() throws -> [Fixture] {
        var cases: [Fixture] = []
        var isBody = false
        for line in try String(contentsOf: url, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("## ") {
                cases.append(Fixture(name: String(line.dropFirst(3))))
                isBody = false
                continue
            }
            let last = cases.count - 1
            if line == "body:" {
                isBody = true
            } else if line == "is:" {
                isBody = false
            } else if isBody {
                cases[last].body.append(String(line))
            } else if line.hasPrefix("mapping: ") {
                cases[last].mapping = String(line.dropFirst(9))
            } else if line.hasPrefix("more: ") {
                cases[last].more = String(line.dropFirst(6))
            } else if line.hasPrefix("header: ") {
                let parts = line.dropFirst(8).split(separator: ":", maxSplits: 1)
                let value = parts[1].drop { $0 == " " }
                cases[last].headers.append((String(parts[0]), String(value)))
            } else {
                cases[last].expected.append(String(line))
            }
        }
        return cases
    }

    func write(_ cases: [Fixture], _ results: [[String]]) throws {
        var lines: [String] = []
        for (fixture, result) in zip(cases, results) {
            lines.append("## \(fixture.name)")
            if let mapping = fixture.mapping { lines.append("mapping: \(mapping)") }
            if let more = fixture.more { lines.append("more: \(more)") }
            for header in fixture.headers {
                lines.append("header: \(header.name): \(header.value)")
            }
            lines += ["body:"] + fixture.body + ["is:"] + result + [""]
        }
        try lines.joined(separator: "\n").write(to: url, atomically: true, encoding: .utf8)
    }
}
