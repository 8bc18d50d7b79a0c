import Foundation

extension DevCommandTests.Sandbox {
    /// Starts the sandbox that docs/explain.md and docs/rehearse.md show.
    ///
    /// carol has a phone and a tablet, and subscribes to urgent to-dos.
    static func startOfPages(home: URL) async throws -> DevCommandTests.Sandbox {
        let seed = home.appending(path: "seed.json")
        try Data(
            """
            {"devices": [{"user": "carol", "deviceID": "carols-phone"},
                {"user": "carol", "deviceID": "carols-tablet"}],
             "subscriptions": [{"user": "carol", "subscription": {
               "subscriptionID": "urgent", "subscriptionType": "query",
               "query": {"recordType": "Todo", "predicate": "priority > 2 AND done = false"},
               "firesOn": ["create"], "notificationInfo": {"alertBody": "Urgent"}}}]}
            """.utf8
        ).write(to: seed)
        return try await start(
            ["--port", "0", "--seed", seed.path], home: home, until: "Sown from")
    }
}
