import Foundation
import GatewaySimulator
import NIOHTTP2
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct RecordTests {
    @Test func `a push is recorded as it came, with its outcome`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            let outcome = await sender.send(.numbered(1))
            #expect(
                outcome
                    == .answered(
                        status: 200,
                        headers: [":status": "200", "apns-id": TestPush.apnsID(1)], body: ""))
            let push = try #require(gateway.pushes.first)
            #expect(push.number == 1)
            #expect(push.connection == 1)
            #expect(push.stream == 1)
            #expect(push.receivedAt == Date(timeIntervalSince1970: TimeInterval(TestKey.now)))
            #expect(push.deviceToken == TestPush.token)
            #expect(push.header("apns-topic") == "com.example.Art")
            let names = push.headers.prefix(4).map(\.name)
            #expect(names == [":method", ":scheme", ":path", ":authority"])
            #expect(push.payload == Array(TestPush().body.utf8))
            #expect(push.apnsID == TestPush.apnsID(1))
            #expect(push.answer == .accept)
            #expect(push.isAccepted && push.isAnswered)
        }
    }

    @Test func `the example of the gateway's comment works`() async throws {
        let gateway = try await SimulatedGateway.start()
        let sender = try await TestSender.connect(to: gateway)
        for number in 1...2 { await sender.send(.numbered(number)) }
        let pushes = try await gateway.pushes(count: 2, within: .seconds(5))
        #expect(pushes.map(\.isAnswered) == [true, true])
        await gateway.stop()
    }

    @Test func `every answer has an identifier, also for a push without one`() async throws {
        try await SimulatedGateway.run {
            $0.environment = .development
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for push in [TestPush(), TestPush().with(["apns-id": "bad"])] {
                let outcome = await sender.send(push)
                guard case .answered(_, let headers, _) = outcome else {
                    Issue.record("no answer")
                    return
                }
                #expect(headers["apns-id"] == gateway.pushes.last?.apnsID)
                #expect(headers["apns-id"]?.count == 36)
                #expect(headers["apns-unique-id"]?.count == 36)
            }
        }
    }

    @Test func `repetitions are counted by identifier`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in [1, 2, 1, 1] { await sender.send(.numbered(number)) }
            #expect(gateway.tally(of: TestPush.apnsID(1)).duplicates == 2)
            #expect(gateway.tally(of: TestPush.apnsID(2)).duplicates == 0)
            #expect(gateway.tally(of: TestPush.apnsID(3)) == PushTally())
            #expect(gateway.totals.duplicates == 2)
        }
    }

    @Test func `the oldest pushes are forgotten beyond the capacity, the totals are not`()
        async throws
    {
        try await SimulatedGateway.run {
            $0.recordCapacity = 2
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in [1, 2, 3, 2] { await sender.send(.numbered(number)) }
            #expect(gateway.pushes.map(\.number) == [3, 4])
            #expect(gateway.pushes.map(\.isAnswered) == [true, true])
            #expect(gateway.totals.received == 4)
            #expect(gateway.tally(of: TestPush.apnsID(1)) == PushTally())
            #expect(gateway.tally(of: TestPush.apnsID(2)).received == 2)
        }
    }

    @Test func `waiting ends with the push, with the time, or with the task`() async throws {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            async let awaited = gateway.pushes(count: 2, within: .seconds(300))
            await sender.send(.numbered(1))
            await sender.send(.numbered(2))
            #expect(try await awaited.map(\.apnsID) == [1, 2].map(TestPush.apnsID))

            let timeout = await #expect(throws: GatewayWaitTimeout.self) {
                try await gateway.pushes(count: 3, within: .milliseconds(10))
            }
            #expect(timeout?.totals.received == 2)

            let waiting = Task { try await gateway.pushes(count: 3, within: .seconds(300)) }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
        }
    }

    @Test func `each push is handed over when its answer is decided`() async throws {
        let seen = Mutex<[Int]>([])
        try await SimulatedGateway.run {
            $0.onPush = { push in seen.withLock { $0.append(push.number) } }
        } _: { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in [1, 2, 3] { await sender.send(.numbered(number)) }
            #expect(seen.withLock { $0 } == [1, 2, 3])
        }
    }

    @Test func `a body larger than every window arrives, and is recorded up to 64 kB`() async throws
    {
        try await SimulatedGateway.run { gateway in
            let sender = try await TestSender.connect(to: gateway)
            for number in 1...3 {
                var push = TestPush.numbered(number)
                push.body = String(repeating: "x", count: 200_000)
                let outcome = await sender.send(push)
                #expect(outcome.summary == CheckCase.refused(413, "PayloadTooLarge"))
            }
            #expect(gateway.pushes.map(\.payload.count) == [65_536, 65_536, 65_536])
            var endless = TestPush.numbered(4)
            endless.body = String(repeating: "x", count: 2_000_000)
            let outcome = await sender.send(endless)
            #expect(outcome == .reset(.enhanceYourCalm))
        }
    }

    @Test func `many pushes on several connections are all accounted for`() async throws {
        try await SimulatedGateway.run { gateway in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for connection in 0..<4 {
                    group.addTask {
                        let sender = try await TestSender.connect(to: gateway)
                        let pushes = (0..<250).map { TestPush.numbered(connection * 250 + $0) }
                        await sender.send(pushes[0])
                        let streams = sender.begin(Array(pushes.dropFirst()))
                        for stream in streams { _ = await sender.outcome(of: stream) }
                    }
                }
                try await group.waitForAll()
            }
            let totals = gateway.totals
            #expect(totals.received == 1000)
            #expect(totals.accepted == 1000)
            #expect(totals.answered == 1000)
            #expect(totals.duplicates == 0)
            #expect(totals.connections == 4)
            #expect(totals.streamLimitViolations == 0)
        }
    }
}
