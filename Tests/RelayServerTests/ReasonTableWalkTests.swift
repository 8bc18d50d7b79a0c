import Foundation
import Gateway
import GatewaySimulator
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// Every row of the reason table, from a posted change to what the operator sees.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ReasonTableWalkTests {
    /// What happens to a delivery whose first attempt gets this answer.
    private enum Fate {
        case deadLetter, forgottenToken, secondAttempt, freshConnection, halt
    }

    private static func fate(of row: ReasonRow) -> Fate {
        switch row.reaction {
        case .deliver, .retry: .secondAttempt
        // A provider token that was just signed cannot be too old, so it is tried on another
        // connection.
        case .retryOnFreshConnection, .renewProviderToken: .freshConnection
        case .forgetDeviceToken: .forgottenToken
        case .deadLetter: .deadLetter
        case .pauseTopic, .pauseContainer: .halt
        }
    }

    @Test(arguments: ReasonTable.apns.rows.indices)
    func `each answer of the reason table has its effect`(index: Int) async throws {
        let row = ReasonTable.apns.rows[index]
        let refusal = GatewaySimulator.GatewayRefusal(
            status: row.status, reason: row.reason,
            timestamp: row.status == 410 ? Date().addingTimeInterval(60) : nil,
            retryAfter: row.status == 503 ? 1 : nil)
        let bobs = SampleDevice(name: "bobs", owner: "bob").token
        let script = AnswerScript([
            ScriptRule(.device(bobs), [ScriptedAnswer(.refuse(refusal), times: 1)])
        ])
        try await RunningRelay.with(script: script) { relay in
            try await relay.container.save(.query("q"), as: "bob")
            try await relay.container.post(.change("create", "a1"))
            try await relay.relay.waitUntilSettled(within: .patience)
            let first = try #require(relay.gateway.simulated.pushes.first)
            #expect(first.answer.status == row.status)
            try await check(Self.fate(of: row), row, first, relay)
        }
    }

    private func check(
        _ fate: Fate, _ row: ReasonRow, _ first: ReceivedPush, _ relay: RunningRelay
    ) async throws {
        let outcomes = try await receipts(of: first, relay)
        let letters = try await relay.listed("deadLetters")
        switch fate {
        case .deadLetter:
            #expect(outcomes == ["dead \(row.status) \(row.reason) 1"])
            #expect(letters.map { $0.value(at: ["reason"]) } == [.string(row.reason)])
            #expect(letters.map { $0.value(at: ["attempts"]) } == [1])
            #expect(try await relay.listed("retries") == [])
        case .forgottenToken:
            #expect(outcomes == ["unregistered \(row.status) \(row.reason) 1"])
            #expect(letters.map { $0.value(at: ["reason"]) } == [.string(row.reason)])
            let names = try await relay.listed("devices").map { $0.value(at: ["deviceID"]) }
            #expect(!names.contains("bobs") && names.contains("phone"))
        case .secondAttempt:
            try await expectSecond(first, relay)
            #expect(letters == [])
            let all = try await receipts(of: first, relay)
            #expect(all == ["accepted 200  2", "deferred \(row.status) \(row.reason) 1"])
        case .freshConnection:
            try await expectSecond(first, relay)
            #expect(letters == [])
            let all = try await receipts(of: first, relay)
            #expect(all == ["accepted 200  1", "deferred \(row.status) \(row.reason) 0"])
        case .halt:
            #expect(outcomes == ["deferred \(row.status) \(row.reason) 0"])
            #expect(letters == [])
            let waiting = try await relay.listed("retries")
            #expect(waiting.map { $0.value(at: ["reason"]) } == [.string(row.reason)])
            #expect(relay.gateway.simulated.pushes.count == 1)
            let overview = try await relay.client.administer("GET", "overview").expect(200)
            let halts = relay.elements(of: overview, "halts")
            #expect(halts.map { $0.value(at: ["reason"]) } == [.string(row.reason)])
            let shown = try await relay.client.administer("GET", relay.container.path).expect(200)
            #expect(relay.elements(of: shown, "halts") == halts)
            // Correcting the settings releases the delivery, with the same ID.
            let reply = try await relay.client.administer(
                "PATCH", relay.container.path, ["topics": ["com.example.Art"]])
            #expect((200...201).contains(reply.status), "\(reply.text)")
            try await expectSecond(first, relay)
        }
        // If the row requires another connection, the second attempt uses one.
        if row.connection == .retire, relay.gateway.simulated.pushes.count > 1 {
            let connections = Set(relay.gateway.simulated.pushes.map(\.connection))
            #expect(connections.count == 2)
        }
    }

    private func expectSecond(_ first: ReceivedPush, _ relay: RunningRelay) async throws {
        let pushes = try await relay.pushes(2)
        #expect(pushes[1].apnsID == first.apnsID)
        #expect(pushes[1].isAccepted)
        #expect(pushes[1].payload == first.payload)
        for _ in 0..<1000 where try await !relay.listed("retries").isEmpty {
            try await relay.relay.waitUntilSettled(within: .patience)
        }
        #expect(try await relay.listed("retries") == [])
    }

    private func receipts(
        of push: ReceivedPush, _ relay: RunningRelay
    ) async throws -> [String] {
        let reply = try await relay.client.administer(
            "GET", "receipts?deliveryID=\(push.apnsID)"
        ).expect(200)
        return relay.elements(of: reply, "receipts").map { receipt in
            ["outcome", "status", "reason", "attempt"].map { name in
                switch receipt.value(at: [name]) {
                case .string(let text)?: text
                case .integer(let number)?: "\(number)"
                default: ""
                }
            }.joined(separator: " ")
        }.sorted()
    }
}

extension RunningRelay {
    /// Returns the elements of one of the container's lists.
    func listed(_ name: String) async throws -> [JSONValue] {
        let reply = try await client.administer("GET", "\(container.path)/\(name)").expect(200)
        return elements(of: reply, name)
    }

    func elements(of reply: RelayClient.Reply, _ name: String) -> [JSONValue] {
        if case .array(let elements)? = reply[name] { elements } else { [] }
    }
}
