import GatewaySimulator
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Beyond its bounds the relay refuses changes.
///
/// It names the bound and says when to retry, keeps what it has accepted, and accepts changes again
/// by itself.
@Suite(.serialized, .timeLimit(.minutes(15))) struct OverloadScenarioTests {
    /// Posts ten changes that owe bob pushes, and then single changes until one is refused.
    private static func postUntilRefused(
        _ relay: RunningRelay, by bound: String
    ) async throws -> (taken: Int, refusal: RelayClient.Reply) {
        try await relay.container.save(.query("q"), as: "bob")
        try await relay.container.post(.array((0..<10).map { .change("create", "a\($0)") }))
        // The bounds are checked every second.
        try await relay.waitForBounds([bound])
        var taken = 10
        while true {
            let reply = try await relay.post("b\(taken)")
            if reply.status != 200 { return (taken, reply) }
            taken += 1
        }
    }

    private static func check(
        _ reply: RelayClient.Reply, names bound: String, _ relay: RunningRelay
    ) async throws {
        #expect(reply.status == 503)
        #expect(reply.retryAfter == "5")
        #expect(reply["serverErrorCode"] == "TRY_AGAIN_LATER")
        #expect(reply["bound"] == .string(bound))
        try await relay.waitForBounds([bound])
    }

    /// Waits until changes are accepted, and all accepted changes have been pushed.
    private static func checkRecovery(
        _ relay: RunningRelay, taken: Int, at gateway: SampleGateway
    ) async throws {
        try await relay.waitForBounds([])
        while try await relay.post("last").status != 200 {}
        let accepted = try await gateway.simulated.totals(within: .patience) {
            $0.accepted - $0.duplicates >= taken + 1
        }
        #expect(accepted.accepted - accepted.duplicates == taken + 1)
    }

    @Test func `too many retries refuse changes until the gateway is back`() async throws {
        try await RunningRelay.with(["--bounds-retries", "3"]) { relay in
            await relay.gateway.simulated.stop()
            let (taken, refusal) = try await Self.postUntilRefused(relay, by: "retries")
            try await Self.check(refusal, names: "retries", relay)
            // Calls that append nothing are answered as usual.
            #expect(try await relay.container.subscriptionIDs(of: "bob") == ["q"])
            try await relay.container.save(.query("r", "artist == 'x'"), as: "alice")
            let back = try await relay.gateway.startAgain()
            try await Self.checkRecovery(relay, taken: taken, at: back)
            await back.simulated.stop()
        }
    }

    @Test func `too many unsettled changes refuse changes until they are settled`() async throws {
        let silence = AnswerScript.all(ScriptedAnswer(.silence))
        let settings = ["--bounds-log-lag", "3", "--delivery-in-flight", "1"]
        try await RunningRelay.with(settings, script: silence) { relay in
            let (taken, refusal) = try await Self.postUntilRefused(relay, by: "logLag")
            try await Self.check(refusal, names: "logLag", relay)
            await relay.gateway.simulated.stop()
            let back = try await relay.gateway.startAgain()
            try await Self.checkRecovery(relay, taken: taken, at: back)
            await back.simulated.stop()
        }
    }

    @Test func `too much memory refuses changes while deliveries continue`() async throws {
        // The bound is first checked after a second, so these changes are accepted.
        try await RunningRelay.with(["--bounds-memory-megabytes", "1"]) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            var taken = 0
            var reply = try await relay.post("a0")
            while reply.status == 200 {
                taken += 1
                reply = try await relay.post("a\(taken)")
            }
            try await Self.check(reply, names: "memory", relay)
            #expect(try await relay.arrivals().count == taken)
        }
    }
}

extension RunningRelay {
    /// Posts a change that may be refused.
    func post(_ name: String) async throws -> RelayClient.Reply {
        try await client.call(
            "POST", "/changes/1/\(container.key.container)/development/database",
            headers: ["Content-Type": "application/json"],
            body: JSONValue.change("create", name).text)
    }

    /// Waits until the overview lists exactly these bounds as reached.
    func waitForBounds(_ bounds: [String]) async throws {
        while true {
            let view = try await client.administer("GET", "overview").expect(200)
            guard case .object(let refusing)? = view["refusing"] else {
                throw MissingMember(name: "refusing")
            }
            if refusing.members.map(\.name) == bounds { return }
        }
    }
}

/// A response lacks a member.
private struct MissingMember: Error {
    let name: String
}
