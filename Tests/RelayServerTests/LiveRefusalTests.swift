import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// What refuses a live query names the member that its client has written.
@Suite(.serialized, .timeLimit(.minutes(30))) struct LiveRefusalTests {
    typealias Live = LiveScenarioTests

    @Test func `a refusal begins with the place in the frame`() async throws {
        let cases: [(query: JSONObject, reason: String)] = [
            (["recordType": 5], "queries[0].recordType: a string is expected"),
            (["recordType": ""], "queries[0].recordType: not a record type"),
            (["recordType": "Artwork", "database": "shared"], "queries[0].database: the shared"),
            (
                ["recordType": "Artwork", "query": ["where": ["price": ["$in": [1]]]]],
                "queries[0].query.where.price.$in: invalid options"
            ),
            (
                ["recordType": "Artwork", "query": ["where": []]],
                "queries[0].query.where: invalid options"
            ),
            (
                [
                    "recordType": "Artwork",
                    "query": [
                        "filterBy": [
                            [
                                "comparator": "X", "fieldName": "price",
                                "fieldValue": ["value": 1],
                            ]
                        ]
                    ],
                ],
                "queries[0].query.filterBy[0].comparator: "
            ),
            (
                ["recordType": "Artwork", "query": ["predicate": "price ==="]],
                "queries[0].query.predicate at byte 6: "
            ),
        ]
        try await RunningRelay.with { relay in
            try await Live.keep(relay)
            let page = try await Live.open(relay)
            for (version, expected) in cases.enumerated() {
                try await page.send([
                    "type": "set", "version": .integer(Int64(version + 1)),
                    "queries": [.object(expected.query)],
                ])
                let state = await page.frame("state")
                let error = state?["queries"]?.value(at: ["0", "error", "reason"])
                guard case .string(let reason)? = error else {
                    Issue.record("\(expected.reason) was taken: \(String(describing: state))")
                    continue
                }
                #expect(reason.hasPrefix(expected.reason), "\(reason)")
            }
            try await page.close()
        }
    }
}
