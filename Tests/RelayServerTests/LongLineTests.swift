import RelayModel
import RelayTestKit
import Testing

@testable import Fanout
@testable import RelayServer
@testable import Storage

/// The line in which requests with long conditions wait, and what they do not block.
@Suite(.timeLimit(.minutes(30))) struct LongLineTests {
    private static let long: JSONValue = [
        "subscriptionID": "a", "subscriptionType": "query", "firesOn": ["create"],
        "query": [
            "recordType": "Artwork",
            "predicate": .string(
                "title == '\(String(repeating: "x", count: LongBodies.leastOfConditions))'"),
        ],
        "notificationInfo": ["alertBody": "new"],
    ]

    /// Makes a call, runs `meanwhile` once the call waits in the line for long conditions, and lets
    /// it continue.
    private func answer(
        of relay: TestRelay, to call: @escaping @Sendable () async throws -> TestRelay.Answer,
        meanwhile: () -> Void = {}
    ) async throws -> TestRelay.Answer {
        let line = relay.dependencies.longBodies.line
        let held = AsyncStream.makeStream(of: Void.self)
        let entered = AsyncStream.makeStream(of: Void.self)
        let holder = Task {
            try await line.turn(of: TestRelay.container) {
                entered.continuation.yield()
                for await _ in held.stream.prefix(1) {}
            }
        }
        for await _ in entered.stream.prefix(1) {}
        let calling = Task { try await call() }
        #expect(await Turns.yield { line.waiting == 1 })
        meanwhile()
        held.continuation.yield()
        try await holder.value
        return try await calling.value
    }

    // Regression: a change that needs long judging waited for all of them, and all pushes waited
    // for the change.
    @Test func `requests with long conditions do not delay the judging of changes`() async throws {
        try await TestRelay.with { relay in
            let turns = relay.dependencies.indexes.turns
            let body = SubscriptionScenarioTests.create(Self.long.text)
            let saved = try await answer(of: relay) {
                try await relay.post("subscriptions/modify", body)
            } meanwhile: {
                let mayJudge = turns.begin(TestRelay.container, again: {})
                #expect(mayJudge)
                if mayJudge { turns.end(TestRelay.container) }
            }
            #expect(saved.text.contains("activationPosition"), "\(saved.text)")
        }
    }

    @Test func `a rehearsed long condition is parsed in turns too`() async throws {
        try await TestRelay.with { relay in
            let draft: JSONValue = ["subscription": Self.long]
            let rehearsed = try await answer(of: relay) {
                try await relay.post("subscriptions/rehearse", draft.text)
            }
            #expect(rehearsed.status == 200, "\(rehearsed.text)")
        }
    }
}
