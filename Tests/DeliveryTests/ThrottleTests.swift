import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import Testing

@testable import Delivery

/// A push that a throttle let through is remembered as long as it counts, across restarts too.
@Suite struct ThrottleTests {
    /// Returns a delivery whose subscription allows a number of pushes in a minute.
    private static func throttled(
        _ position: UInt64, _ pushes: Int = 2, device: String = "phone"
    ) throws -> OwedDelivery {
        var owed = Fixtures.delivery(at: position, device: device)
        var kindness = SubscriptionKindness()
        kindness.throttle = try PushThrottle(
            json: ["pushes": .integer(Int64(pushes)), "seconds": 60], path: "")
        owed.kindness = Kindness(
            subscription: kindness, device: DeviceKindness(), subscriptionSerial: nil,
            deviceSerial: nil)
        return owed
    }

    private static func after(_ seconds: Int64) -> Timestamp {
        Fixtures.moment.advanced(by: .seconds(seconds))
    }

    private static func place(
        _ owed: OwedDelivery, at seconds: Int64, in memory: inout ThrottleMemory,
        hasGone: Bool = false
    ) throws -> Timestamp? {
        let throttle = try #require(owed.kindness?.subscription.throttle)
        return memory.place(owed.delivery, throttle, hasGone: hasGone, at: after(seconds))
    }

    private static func past(
        _ owed: OwedDelivery, at seconds: [Int64], isWaitedFor: Bool = false
    ) -> ThrottlePast {
        let line = ThrottledLine(owed.delivery)
        let places = seconds.enumerated().map { number, second in
            ThrottlePlace(
                line, Fixtures.delivery(at: UInt64(900 + number)).delivery.id,
                takenAt: after(second), endsAt: after(second + 60))
        }
        return ThrottlePast(line, places: places, isWaitedFor: isWaitedFor)
    }

    @Test func `an unknown line is learned from the durable places`() throws {
        var memory = ThrottleMemory()
        let owed = try Self.throttled(1)
        let other = try Self.throttled(1, device: "tablet")
        #expect(
            memory.unknownLines(among: [owed, other, Fixtures.delivery(at: 2)])
                == [ThrottledLine(owed.delivery), ThrottledLine(other.delivery)])
        memory.learn([Self.past(owed, at: [0, 50])], at: Self.after(55))
        #expect(
            memory.unknownLines(among: [owed, other]) == [ThrottledLine(other.delivery)])
        #expect(try Self.place(owed, at: 55, in: &memory) == Self.after(60))
        // The memory keeps what it learned first, because a later answer may have been read
        // earlier.
        memory.learn([Self.past(owed, at: [])], at: Self.after(56))
        #expect(try Self.place(owed, at: 56, in: &memory) == Self.after(60))
    }

    @Test func `waiting pushes go first, and a clock that was set back frees no place`()
        throws
    {
        var memory = ThrottleMemory()
        let owed = try Self.throttled(1)
        memory.learn([Self.past(owed, at: [1000], isWaitedFor: true)], at: Self.after(10))
        #expect(try Self.place(owed, at: 10, in: &memory) == Self.after(10), "something waits")
        var told = try Self.throttled(2)
        told.delivery.standsFor = 3
        #expect(try Self.place(told, at: 10, in: &memory) == nil)
        #expect(
            try Self.place(try Self.throttled(3), at: 11, in: &memory) == Self.after(70),
            "what the clock says was later has just been")
    }

    @Test func `a delivery that was sent once is sent again at once, and counts`() throws {
        var memory = ThrottleMemory()
        #expect(try Self.place(try Self.throttled(1, 1), at: 0, in: &memory) == nil)
        let late = try Self.throttled(2, 1)
        #expect(try Self.place(late, at: 30, in: &memory) == Self.after(60))
        #expect(try Self.place(late, at: 30, in: &memory, hasGone: true) == nil)
        #expect(memory.unrecordedPlace(of: late.delivery)?.endsAt == Self.after(90))
        #expect(try Self.place(try Self.throttled(3, 1), at: 61, in: &memory) == Self.after(90))
    }

    @Test func `a place is kept until it is durable`() throws {
        var memory = ThrottleMemory()
        let owed = try Self.throttled(1)
        _ = try Self.place(owed, at: 0, in: &memory)
        let place = try #require(memory.unrecordedPlace(of: owed.delivery))
        #expect(place.takenAt == Self.after(0) && place.endsAt == Self.after(60))
        memory.clockWasSetBack(by: .seconds(10))
        #expect(memory.unrecordedPlace(of: owed.delivery)?.endsAt == Self.after(50))
        memory.recorded([place])
        #expect(memory.unrecordedPlace(of: owed.delivery) == nil)
        var rehearsed = ThrottleMemory(isRecorded: false)
        _ = try Self.place(owed, at: 0, in: &rehearsed)
        #expect(rehearsed.unrecordedPlace(of: owed.delivery) == nil)
    }

    @Test func `a line that is about to be decided is not evicted by others`()
        throws
    {
        var memory = ThrottleMemory()
        let owed = try Self.throttled(1, 1)
        #expect(try Self.place(owed, at: 0, in: &memory) == nil)
        func learn(_ numbers: Range<Int>) {
            let others = numbers.map { Fixtures.delivery(at: 2, device: "other-\($0)") }
            memory.learn(
                others.map {
                    ThrottlePast(ThrottledLine($0.delivery), places: [], isWaitedFor: false)
                }, at: Self.after(1))
        }
        learn(0..<16_383)
        let next = try Self.throttled(2, 1)
        #expect(memory.unknownLines(among: [next]) == [])
        learn(16_383..<17_000)
        #expect(try Self.place(next, at: 1, in: &memory) == Self.after(60))
        learn(17_000..<40_000)
        #expect(memory.unknownLines(among: [next]) == [ThrottledLine(next.delivery)])
    }

    @Test func `a restart frees no places`() async throws {
        let temporary = try TemporaryStore()
        let bench = try await WorkerBench(on: temporary)
        try await bench.run {
            try await bench.accept([try Self.throttled(1), try Self.throttled(2)])
            #expect(await bench.passed(2))
        }
        #expect(bench.gateway.requests.count == 2)
        await bench.store.close()

        let mark = ProgressMark(position: LogPosition(2), offset: 0)
        let next = try await WorkerBench(at: mark, on: temporary)
        try await next.run {
            try await next.accept([
                try Self.throttled(3), try Self.throttled(4, device: "tablet"),
            ])
            #expect(await next.passed(4))
            let sent = try Self.throttled(4, device: "tablet").delivery.id
            #expect(next.gateway.requests.map(\.deliveryID) == [sent])
            #expect(try await next.store.nextDigestDue() == Self.after(60))
            let went = await next.advance(by: .seconds(1)) {
                next.gateway.requests.count == 2
            }
            #expect(went)
        }
        await next.store.close()
    }
}
