import Foundation
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The transcript in docs/live.md is what the relay says.
@Suite(.timeLimit(.minutes(30))) struct LiveTranscriptTests {
    private static let lines: [String] = {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/live.md")
        let text = (try? String(contentsOf: page, encoding: .utf8)) ?? ""
        let block = text.components(separatedBy: "```transcript\n").dropFirst().first ?? ""
        return block.components(separatedBy: "```").first?.split(separator: "\n").map(String.init)
            ?? []
    }()

    /// Returns whether `value` matches `pattern`, in which `…` stands for anything.
    private static func fits(_ value: JSONValue?, _ pattern: JSONValue) -> Bool {
        if pattern == "…" { return value != nil }
        switch (value, pattern) {
        case (.object(let object)?, .object(let wanted)):
            return object.members.map(\.name).sorted() == wanted.members.map(\.name).sorted()
                && wanted.members.allSatisfy { fits(object[$0.name], $0.value) }
        case (.array(let values)?, .array(let wanted)):
            return values.count == wanted.count
                && zip(values, wanted).allSatisfy { fits($0, $1) }
        default: return value == pattern
        }
    }

    @Test func `the transcript of the page is what the relay says`() async throws {
        #expect(Self.lines.count > 20)
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "POST", "\(relay.container.path)/schema/recordTypes/Artwork", ["shadow": true]
            ).expect(200)
            try await Self.post(relay, "create", "a0", ["price": 50])
            let place = relay.container.key
            let (page, _) = try await LiveConnection.open(
                try await relay.relay.ports.port(of: "http"),
                path: "/live/1/\(place.container)/\(place.environment.rawValue)")
            for line in Self.lines {
                let rest = String(line.dropFirst(2))
                switch line.first {
                case ">":
                    guard case .object(var frame) = try JSONValue(parsing: rest) else { return }
                    if frame["type"] == "hello" {
                        frame["ckAPIToken"] = .string(relay.container.apiToken)
                        frame["ckWebAuthToken"] = .string(SampleContainer.userToken("alice"))
                    }
                    try await page.send(.object(frame))
                case "<":
                    let frame = await page.frame().map { JSONValue.object($0) }
                    let wanted = try JSONValue(parsing: rest)
                    #expect(Self.fits(frame, wanted), "\(frame?.text ?? "nothing"), not \(rest)")
                default:
                    let words = rest.split(separator: " ", maxSplits: 2)
                    guard case .object(let fields) = try JSONValue(parsing: String(words[2])) else {
                        return
                    }
                    try await Self.post(relay, String(words[0]), String(words[1]), fields)
                }
            }
            try await page.close()
        }
    }

    private static func post(
        _ relay: RunningRelay, _ operation: String, _ name: String, _ fields: JSONObject
    ) async throws {
        try await relay.container.post([
            "operation": .string(operation), "recordType": "Artwork",
            "recordName": .string(name), "after": .object(fields),
        ])
    }
}
