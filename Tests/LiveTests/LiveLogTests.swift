import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import Live

/// A log that is pruned while it is read.
@Suite struct LiveLogTests {
    /// A log of which nothing is left up to a place once somebody has read from before it.
    private final class ShrinkingLog: ShardLog {
        private struct State {
            var end = LogPosition.start
            var isGone = false
        }

        private let store: RelayStore
        private let state = Mutex(State())

        init(_ store: RelayStore) { self.store = store }

        /// Takes away all up to `end`, after one more reading.
        func shrink(to end: LogPosition) {
            state.withLock { $0 = State(end: end) }
        }

        func followedEntries(
            after position: LogPosition, limit: Int
        ) async throws -> [FollowedEntry] {
            let start = state.withLock { state in
                guard position < state.end else { return position }
                defer { state.isGone = true }
                return state.isGone ? state.end : position
            }
            return try await store.followedEntries(after: start, limit: limit)
        }

        func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry] {
            try await store.entries(after: position, limit: limit)
        }

        func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws {
            try await store.quarantine(entry, at: now)
        }

        func head() async throws -> LogPosition { try await store.head() }

        func waitForGrowth(beyond position: LogPosition) async throws {
            try await store.waitForGrowth(beyond: position)
        }
    }

    private static let queries = ["all": LiveScenario.query(.changes)]

    private static func creations(_ count: Int) -> [RecordChange] {
        (0..<count).map { number in
            RecordChange(
                .create, of: LiveScenario.type,
                RecordID(recordName: Fixtures.identifier("r\(number)")))
        }
    }

    @Test("who comes back begins anew also where the log is pruned while it is read for them")
    func beginsAnewBehindGap() async throws {
        let scenario = try await LiveScenario()
        let log = ShrinkingLog(scenario.store)
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine(log: log) { engine in
            try await client.come(Self.queries, to: engine)
            await engine.disconnect(1)
            client.leave()
            let start = try await scenario.store.head()
            try await scenario.append(Self.creations(600))
            try await engine.reachHead()
            log.shrink(to: LogPosition(start.rawValue + 400))
            try await client.come(Self.queries, version: 2, to: engine)
        }
        let state = client.state.withLock { $0 }
        #expect(state.resets == ["expired"])
        #expect(state.changes["all"] ?? [] == [])
        #expect(state.gaps["all"]?.count == 1)
    }

    @Test("a query ends where the log was pruned to behind what it has been told")
    func endsBeforeGap() async throws {
        let scenario = try await LiveScenario()
        let log = ShrinkingLog(scenario.store)
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        try await scenario.withEngine(log: log) { engine in
            try await client.come(Self.queries, to: engine)
            let start = try await scenario.store.head()
            log.shrink(to: LogPosition(start.rawValue + 400))
            try await scenario.append(Self.creations(600))
            try await engine.reachHead()
            #expect(client.state.withLock { $0.gone } == ["all"])
            // Nothing is in the way of declaring it again.
            await engine.disconnect(1)
            try await client.come(Self.queries, version: 2, to: engine)
            try await scenario.append(Self.creations(1))
            try await engine.fence("f", of: 1)
        }
        let state = client.state.withLock { $0 }
        let head = try await scenario.store.head()
        #expect(state.resets == ["expired"])
        #expect(state.changes["all"]?.last == Int64(clamping: head.rawValue))
    }
}
