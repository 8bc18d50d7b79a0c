import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Records in private databases with readers, in results with an order.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LivePrivateTests {
    typealias Live = LiveScenarioTests

    private static let set: JSONValue = [
        "type": "set", "version": 1,
        "queries": [
            [
                "id": "own", "database": "private", "recordType": "Artwork",
                "sortBy": [["fieldName": "rank"]],
            ]
        ],
    ]

    /// Returns the reasons for which the query began anew, until its result is complete.
    private static func resets(_ page: LiveConnection) async -> [JSONValue] {
        var resets: [JSONValue] = []
        while let frame = await page.frame() {
            if frame["type"] == "reset" { resets.append(frame["reason"] ?? .null) }
            if frame["state"] == "complete" { break }
        }
        return resets
    }

    /// The second page joins an existing group, which shows the same as the first page's.
    @Test func `a second page learns that it has everything`() async throws {
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            try await relay.container.post([
                "operation": "create", "recordType": "Artwork", "recordName": "a",
                "after": ["rank": 1], "database": "private", "owner": "alice",
                "readers": ["alice"],
            ])
            var pages: [LiveConnection] = []
            for resets: [JSONValue] in [["readers"], []] {
                let page = try await Live.open(relay)
                try await page.send(Self.set)
                #expect(await Self.resets(page) == resets)
                pages.append(page)
            }
            for page in pages { try await page.close() }
        }
    }
}
