import Live
import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

/// Tokens tell their store, a position, and one history of the store from another.
@Suite struct LiveTokenTests {
    /// A log that counts how often a single entry is read.
    private final class CountingLog: AlteredLog {
        let store: RelayStore
        let count = Mutex(0)

        init(_ store: RelayStore) { self.store = store }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            if limit == 1 { count.withLock { $0 += 1 } }
            return try await store.followedEntries(after: position, limit: limit)
        }
    }

    @Test func `a token is read as it was written, with and without a mark`() {
        let token = LiveToken(store: "ab", position: LogPosition(41), mark: 7)
        #expect(token.text == "1-ab-15-7")
        #expect(LiveToken(token.text) == token)
        let bare = LiveToken(store: "ab", position: LogPosition(41))
        #expect(bare.text == "1-ab-15")
        #expect(LiveToken(bare.text) == bare)
        for text in ["", "1-ab", "1-ab-15-", "1-ab-15-1z141z4", "1-ab-15-7-7", "2-ab-15-7"] {
            #expect(LiveToken(text) == nil, "\(text)")
        }
    }

    @Test func `the token of a position has the mark of its entry`() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "a")])
        let client = ModelClient.of(1)
        try await scenario.withEngine { engine in
            try await client.come(["all": LiveScenario.query(.result)], to: engine)
            try await scenario.modify([LiveScenario.edit(.create, "b")])
            try await engine.fence("f", of: 1)
        }
        let since = client.state.withLock { $0.since["all"] }
        let token = try #require(since.flatMap { LiveToken($0) })
        #expect(token.mark == LiveToken.mark(of: Fixtures.moment))
    }

    @Test func `a query begins anew whose token is of another history of the store`()
        async throws
    {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "a")])
        let head = try await scenario.store.head()
        let mark = LiveToken.mark(of: Fixtures.moment)
        let cases: [(mark: UInt32?, since: LogPosition, reset: LiveReset?)] = [
            (mark, head, nil), (nil, head, nil), (mark &+ 1, head, .foreign),
            (mark &+ 1, .start, nil), (mark &+ 1, head.next, nil),
        ]
        try await scenario.withEngine { engine in
            for (mark, since, reset) in cases {
                var query = DeclaredQuery(
                    id: "all", LiveScenario.query(.result), grant: .world, fingerprint: "f",
                    since: since)
                query.entryMark = mark
                let set = LiveSet(
                    version: 1, [query], removing: nil,
                    under: await engine.schema(of: Fixtures.container))
                let verified = await engine.verified(set)
                #expect(verified.queries.first?.reset == reset)
            }
        }
    }

    @Test func `a set of many positions has few entries read for it`() async throws {
        let scenario = try await LiveScenario()
        for number in 0..<20 {
            try await scenario.modify([LiveScenario.edit(.create, "r\(number)")])
        }
        let head = try await scenario.store.head()
        let log = CountingLog(scenario.store)
        try await scenario.withEngine(log: log) { engine in
            let queries = (0..<20).map { number in
                var query = DeclaredQuery(
                    id: "\(number)", LiveScenario.query(.result), grant: .world,
                    fingerprint: "f", since: LogPosition(head.rawValue - UInt64(number)))
                query.entryMark = LiveToken.mark(of: Fixtures.moment) &+ 1
                return query
            }
            let set = LiveSet(
                version: 1, queries, removing: nil,
                under: await engine.schema(of: Fixtures.container))
            let verified = await engine.verified(set)
            #expect(verified.queries.prefix(8).allSatisfy { $0.reset == .foreign })
            #expect(verified.queries.dropFirst(8).allSatisfy { $0.reset == nil })
            #expect(log.count.withLock { $0 } == 8)
        }
    }
}
