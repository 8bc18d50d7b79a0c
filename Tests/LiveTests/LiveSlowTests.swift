import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

@testable import Live

/// A client that falls behind again and again is shown and told the same as one that does not.
@Suite struct LiveSlowTests {
    /// A connection that falls behind after every few commands, until it is drained.
    ///
    /// A socket whose client does not read does the same.
    private final class SlowHub: LiveHub {
        private struct State {
            /// The number of commands after which the connection falls behind; 0 for never.
            var pace: Int
            var told = 0
            var lagging: LiveLag?
            var isCatchingUp = false
            var answered: Set<String> = []
        }

        private let client: ModelClient
        private let engine: LiveEngine
        private let state: Mutex<State>

        init(_ client: ModelClient, _ engine: LiveEngine, pace: Int) {
            self.client = client
            self.engine = engine
            state = Mutex(State(pace: pace))
        }

        func room() async {}

        func post(_ commands: [LiveCommand]) {
            var fences: [LiveFrame] = []
            for command in commands { perform(command, &fences) }
            let names = fences.compactMap { frame -> String? in
                let json = try? JSONValue(parsing: frame.bytes)
                guard case .string(let name)? = json?.value(at: ["id"]) else { return nil }
                return name
            }
            state.withLock { $0.answered.formUnion(names) }
        }

        private func perform(_ command: LiveCommand, _ fences: inout [LiveFrame]) {
            switch command {
            case .send(let number, let frames):
                let answers = frames.filter { $0.type == "fenced" }
                if let lagging = state.withLock({ $0.lagging }), !answers.isEmpty {
                    fallBehind(at: lagging, untold: answers)
                    client.post([.send(number, frames.filter { $0.type != "fenced" })])
                } else {
                    fences += answers
                    client.post([command])
                }
            case .deliver(_, _, let position), .close(_, _, let position):
                guard state.withLock({ $0.lagging == nil }) else { return }
                client.post([command])
                let lag = state.withLock { state -> LiveLag? in
                    state.told += 1
                    let isLast = state.pace > 0 && state.told.isMultiple(of: state.pace)
                    if isLast { state.lagging = LiveLag(position, count: state.told) }
                    return isLast ? state.lagging : nil
                }
                if let lag { fallBehind(at: lag) }
            case .caughtUp: state.withLock { ($0.lagging, $0.isCatchingUp) = (nil, false) }
            default: client.post([command])
            }
        }

        private func fallBehind(at lag: LiveLag, untold: [LiveFrame] = []) {
            Task { [engine, client] in
                await engine.fallBehind(client.number, at: lag, untold: untold)
            }
        }

        /// Sets the number of commands after which the connection falls behind.
        func keep(pace: Int) { state.withLock { $0.pace = pace } }

        /// Drains the connection, so that it is told what has happened since.
        func drain() {
            let lagging = state.withLock { state -> LiveLag? in
                guard !state.isCatchingUp, let lagging = state.lagging else { return nil }
                state.isCatchingUp = true
                return lagging
            }
            guard let lagging else { return }
            Task { [engine, client] in await engine.catchUp(client.number, from: lagging) }
        }

        /// Returns whether a fence was answered.
        func hasAnswered(_ fence: String) -> Bool {
            state.withLock { $0.answered.contains(fence) }
        }
    }

    private static let queries: [String: LiveQuery] = [
        "all": LiveScenario.query(.result),
        "cheap": LiveScenario.query(.result, where: "price < 5"),
        "first": LiveScenario.query(
            .result, where: "price < 5", order: [LiveSortKey("price")], limit: .first(2)),
        "changes": LiveScenario.query(.changes, where: "price < 5"),
    ]

    private static func isCheap(_ fields: RecordFields?) -> Bool {
        if case .integer(let price)? = fields?["price"] { price < 5 } else { false }
    }

    private static func edits(_ generator: inout SeededGenerator) -> [RecordEdit] {
        (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            let name = "r\(Int.random(in: 0..<6, using: &generator))"
            guard Int.random(in: 0..<4, using: &generator) > 0 else {
                return LiveScenario.edit(.forceDelete, name)
            }
            return LiveScenario.edit(
                .forceReplace, name,
                ["price": .integer(.random(in: 0..<10, using: &generator))])
        }
    }

    /// Returns the changes that fit, as the log has them.
    private static func fitting(
        _ scenario: LiveScenario, after beginning: LogPosition
    ) async throws -> [Int64] {
        let entries = try await scenario.store.followedEntries(after: beginning, limit: 10_000)
        return try entries.compactMap { entry -> Int64? in
            guard case .change(let logged, _) = entry.body else { return nil }
            let image = try logged.change().judgedImage
            return isCheap(image?.fields) ? Int64(clamping: entry.position.rawValue) : nil
        }
    }

    @Test(
        "a client that falls behind now and then gets each change once",
        arguments: 0..<12)
    func catchesUp(seed: Int) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.forceReplace, "r0", ["price": .integer(1)])])
        let beginning = try await scenario.store.head()
        var generator = SeededGenerator(seed: UInt64(seed) &+ 9_000)
        let rounds = (0..<24).map { _ in Self.edits(&generator) }
        let client = ModelClient.of(1)
        try await scenario.withEngine { engine in
            let hub = SlowHub(client, engine, pace: 2 + seed % 3)
            await engine.connect(1, at: hub, of: Fixtures.container, as: client.reader)
            try await engine.declare(Self.queries, version: 1, by: client)
            await client.wait { $0.isComplete }
            for (round, edits) in rounds.enumerated() {
                try await scenario.modify(edits)
                try await engine.reachHead()
                if (round + seed).isMultiple(of: 3) { hub.drain() }
                guard round % 6 == 5 else { continue }
                // Once a fence is answered, everything before it has been told.
                hub.keep(pace: 0)
                let fence = "f\(round)"
                try await engine.fence(fence, of: 1)
                let isAnswered = await Turns.yield {
                    hub.hasAnswered(fence)
                } between: {
                    hub.drain()
                }
                #expect(isAnswered)
                let state = client.state.withLock { $0 }
                for (id, query) in Self.queries where query.kind == .result {
                    let oracle = try await scenario.oracle(query) { fields in
                        id == "all" || Self.isCheap(fields)
                    }
                    #expect(state.shown[id] ?? [:] == oracle, "\(id) in round \(round)")
                }
                let fitting = try await Self.fitting(scenario, after: beginning)
                #expect(state.changes["changes"] ?? [] == fitting, "round \(round)")
                hub.keep(pace: 2 + seed % 3)
            }
            await engine.disconnect(1)
        }
        #expect(client.state.withLock { $0.resets } == [])
    }
}
