import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// How polls wait, with a clock that the test moves and a real store.
@Suite struct CourierPollsTests {
    private struct Bench {
        let store: RelayStore
        let clock = TestClock()
        let polls: CourierPolls

        init(_ set: (inout CourierPolls.Settings) -> Void = { _ in }) async throws {
            store = try TemporaryStore().open()
            try await store.save(
                ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
                at: Fixtures.moment)
            _ = try await store.createCourier(for: Self.device, at: Fixtures.moment)
            var settings = CourierPolls.Settings()
            set(&settings)
            polls = CourierPolls(
                queue: store, settings: settings, clock: clock, now: { Fixtures.moment })
        }

        static var device: Device {
            var device = Fixtures.device("tab", token: 5)
            device.gateway = .courier
            return device
        }

        /// Queues notifications with these numbers as payloads, and wakes the polls.
        func queue(_ numbers: ClosedRange<UInt64>) async throws {
            for number in numbers {
                _ = try await store.queue(
                    [
                        CourierDelivery(
                            deliveryID: DeliveryID(UUIDBytes(high: 1, low: number)),
                            position: LogPosition(number), container: Fixtures.container,
                            owner: Self.device.owner, deviceID: Self.device.id,
                            payload: Array("\(number)".utf8))
                    ], bounds: CourierBounds(), at: Fixtures.moment)
                polls.ring([Self.device.token])
            }
        }

        func poll(for party: CourierParty? = nil) -> Task<String?, any Error> {
            Task {
                try await polls.next(of: Self.device.token, for: party)
                    .map { String(decoding: $0.payload, as: UTF8.self) }
            }
        }

        /// Starts polls one after the other, so that their order is known.
        func polls(
            _ count: Int, for party: CourierParty? = nil
        ) async -> [Task<String?, any Error>] {
            var polls: [Task<String?, any Error>] = []
            for _ in 0..<count {
                let before = clock.sleeperCount
                polls.append(poll(for: party))
                #expect(await Turns.yield { clock.sleeperCount > before })
            }
            return polls
        }
    }

    @Test func `waiting notifications are returned at once, the oldest first`() async throws {
        let bench = try await Bench()
        try await bench.queue(1...2)
        #expect(try await bench.poll().value == "1")
        #expect(try await bench.poll().value == "2")
        #expect(bench.polls.waiting == 0)
    }

    @Test func `a poll is held until something comes`() async throws {
        let bench = try await Bench()
        let poll = await bench.polls(1)
        #expect(bench.polls.waiting == 1)
        try await bench.queue(1...1)
        #expect(try await poll[0].value == "1")
    }

    @Test func `a poll returns nothing after the hold`() async throws {
        let bench = try await Bench { $0.hold = .seconds(25) }
        let poll = await bench.polls(1)
        bench.clock.advance(by: .seconds(25))
        #expect(try await poll[0].value == nil)
        #expect(bench.polls.waiting == 0)
    }

    @Test func `simultaneous polls of one courier get different notifications`()
        async throws
    {
        let bench = try await Bench()
        let polls = await bench.polls(3)
        try await bench.queue(1...3)
        var texts: Set<String> = []
        for poll in polls { texts.insert(try await poll.value ?? "nothing") }
        #expect(texts == ["1", "2", "3"])
    }

    @Test func `a client that disconnects takes no notification with it`() async throws {
        let bench = try await Bench()
        let polls = await bench.polls(2)
        polls[1].cancel()
        _ = await polls[1].result
        try await bench.queue(1...1)
        #expect(try await polls[0].value == "1")
    }

    @Test func `a fifth poll of one courier releases the first`() async throws {
        let bench = try await Bench()
        let polls = await bench.polls(Limits.maximumPollsPerCourier)
        let late = bench.poll()
        #expect(try await polls[0].value == nil)
        try await bench.queue(1...1)
        late.cancel()
        for poll in polls.dropFirst() { poll.cancel() }
    }

    @Test func `polls beyond the bound are refused unless one has waited long enough`()
        async throws
    {
        let bench = try await Bench {
            $0.polls = 2
            $0.leastHold = .seconds(2)
        }
        let polls = await bench.polls(2)
        await #expect(
            throws: APIError(
                .throttled, "too many polls of web couriers are open", retryAfter: 5)
        ) { try await bench.poll().value }
        bench.clock.advance(by: .seconds(2))
        let late = bench.poll()
        #expect(try await polls[0].value == nil)
        try await bench.queue(1...2)
        let texts = [try await polls[1].value, try await late.value]
        #expect(Set(texts) == ["1", "2"])
    }

    @Test func `a party with few polls displaces one of a party with many`() async throws {
        let bench = try await Bench {
            $0.polls = 4
            $0.leastHold = .seconds(2)
        }
        let crowd = CourierParty(container: 1, user: 1)
        let polls = await bench.polls(4, for: crowd)
        // First a poll of another container, and then one of another user in the crowd's container.
        let other = bench.poll(for: CourierParty(container: 2, user: 2))
        #expect(try await polls[0].value == nil)
        let neighbour = bench.poll(for: CourierParty(container: 1, user: 3))
        #expect(try await polls[1].value == nil)
        await #expect(
            throws: APIError(.throttled, "too many polls of web couriers are open", retryAfter: 5)
        ) { try await bench.poll(for: crowd).value }
        for poll in [polls[2], polls[3], other, neighbour] { poll.cancel() }
    }

    @Test func `a notification that could not be handed over goes to the next poll`() async throws {
        let bench = try await Bench()
        try await bench.queue(1...1)
        let taken = try #require(try await bench.polls.next(of: Bench.device.token))
        let poll = await bench.polls(1)
        try await bench.polls.putBack(taken, of: Bench.device.token)
        #expect(try await poll[0].value == "1")
    }
}
