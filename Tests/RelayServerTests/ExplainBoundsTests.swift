import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// The bounds of explain: time, simultaneous questions, and callers that disconnect.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ExplainBoundsTests {
    private typealias Scenario = ExplainScenarioTests

    @Test func `at its time limit explain returns what it has and says so`() async throws {
        var settings = QueryAdmission.Settings()
        settings.time = .zero
        try await TestRelay.with(queries: settings) { relay in
            let reply = try await relay.post(
                "subscriptions/explain", #"{"recordType":"Artwork","recordName":"a1"}"#)
            #expect(reply.status == 200, "\(reply.text)")
            #expect(reply["cut"] == true, "\(reply.text)")
            #expect(
                reply["sentence"] == "The time limit was reached before anything was found.",
                "\(reply.text)")
        }
    }

    @Test func `explain ends when the caller disconnects`() async throws {
        try await TestRelay.with { relay in
            let dependencies = relay.dependencies
            let service = ExplainService(
                registry: dependencies.registry, retention: dependencies.retention,
                halts: dependencies.halts)
            let source: SourceName = Fixtures.identifier("database")
            _ = try await relay.store.append(
                [ChangeToAppend(Fixtures.change(), key: nil)], container: TestRelay.container,
                source: source, at: TestRelay.now)
            let settings = try #require(
                try await relay.store.container(TestRelay.container))
            let gone = Task {
                withUnsafeCurrentTask { unsafe $0?.cancel() }
                let question = try ExplainQuestion(
                    try JSONReader(["recordType": "Artwork", "recordName": "a1"]),
                    of: Fixtures.identifier("alice"), in: .public)
                return try await QueryAdmission(clock: ContinuousClock()).run(
                    .server, of: TestRelay.container
                ) { allowance in
                    try await service.answer(
                        question, of: settings, for: .administrator, within: allowance,
                        at: TestRelay.now)
                }
            }
            await #expect(throws: CancellationError.self) { try await gone.value }
        }
    }

    @Test func `explain needs a query's place and is refused without one`() async throws {
        try await RunningRelay.with(["--queries-per-container", "1"]) { relay in
            try await relay.container.save(.query("q"))
            let position = try await Scenario.post(.change("create", "a1"), relay)
            let bob = QueryParty.user(Fixtures.identifier("bob"))
            try await relay.relay.queries.run(bob, of: relay.container.key, places: 1) { _ in
                let busy = try await Scenario.ask(["position": .string(position)], relay)
                #expect(busy.status == 429, "\(busy.text)")
            }
            let answer = try await Scenario.ask(["position": .string(position)], relay)
            #expect(answer.status == 200, "\(answer.text)")
            #expect(relay.relay.queries.count == 0)
        }
    }
}
