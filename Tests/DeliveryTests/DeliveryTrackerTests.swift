import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

@Suite struct DeliveryTrackerTests {
    private func accepted(_ delivery: OwedDelivery) -> Resolution {
        Resolution(accepted: delivery, attempts: 1, at: Fixtures.moment)
    }

    private func deferred(_ delivery: OwedDelivery) -> Resolution {
        Resolution(
            retry: Retry(
                delivery: delivery, attempts: 1, dueAt: Fixtures.moment,
                reason: .said("later")),
            status: 503, at: Fixtures.moment)
    }

    private func mark(_ position: UInt64, _ offset: UInt32 = 0) -> ProgressMark {
        ProgressMark(position: LogPosition(position), offset: offset)
    }

    @Test func `entries that owe nothing are passed at once`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        tracker.finish(LogPosition(7))
        let step = tracker.takeStep()
        #expect(step == SettledStep(from: .start, to: mark(7)))
    }

    @Test func `the progress stops before the first open delivery`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let deliveries = (0..<3).map { Fixtures.delivery(at: 5, UInt32($0)) }
        let tickets = deliveries.map { tracker.admit($0, at: Fixtures.moment) }
        tracker.finish(LogPosition(5))
        tracker.settle(tickets[0], accepted(deliveries[0]))
        tracker.settle(tickets[2], accepted(deliveries[2]))
        let first = tracker.takeStep()
        #expect(first?.to == mark(4, 1))
        #expect(first?.receipts.map(\.deliveryID) == [deliveries[0].delivery.id])
        tracker.stepRecorded()
        tracker.settle(tickets[1], accepted(deliveries[1]))
        let second = tracker.takeStep()
        #expect(second?.from == mark(4, 1))
        #expect(second?.to == mark(5))
        #expect(second?.receipts.count == 2)
    }

    @Test func `the progress stops before a change that is judged beside the log`() {
        var tracker = DeliveryTracker(mark: .start, window: 8)
        let before = Fixtures.delivery(at: 2)
        let after = Fixtures.delivery(at: 5)
        let first = tracker.admit(before, at: Fixtures.moment)
        tracker.finish(LogPosition(2))
        tracker.putOff(LogPosition(3))
        tracker.putOff(LogPosition(4))
        let last = tracker.admit(after, at: Fixtures.moment)
        tracker.finish(LogPosition(5))
        let note = FiringNote(position: LogPosition(5), at: Fixtures.moment, errors: [9])
        let isNoted = tracker.add(firings: [note])
        #expect(isNoted)
        tracker.settle(last, accepted(after))
        tracker.settle(first, accepted(before))
        let early = tracker.takeStep()
        #expect(early?.to == mark(2))
        #expect(early?.receipts.map(\.deliveryID) == [before.delivery.id])
        tracker.stepRecorded()
        // The later change is made up first, so the progress does not move.
        tracker.makeUp(MadeUpChange(position: LogPosition(4), ranges: []))
        let none = tracker.takeStep()
        #expect(none == nil)
        #expect(tracker.inFlight == 3)
        // The step that passes the change also records its firings and its ranges.
        let late = FiringNote(position: LogPosition(3), at: Fixtures.moment, errors: [7])
        _ = tracker.add(firings: [late])
        let range = NewRange(
            container: Fixtures.container, position: LogPosition(3), serials: [1, 2])
        tracker.makeUp(MadeUpChange(position: LogPosition(3), ranges: [range]))
        let step = tracker.takeStep()
        #expect(step?.to == mark(5))
        #expect(step?.newRanges == [range])
        #expect(step?.firings == [late, note])
        #expect(step?.receipts.map(\.deliveryID) == [after.delivery.id])
        tracker.stepRecorded()
        #expect(tracker.inFlight == 0)
    }

    @Test func `only one step is being recorded at a time`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        tracker.finish(LogPosition(1))
        let first = tracker.takeStep()
        tracker.finish(LogPosition(2))
        let early = tracker.takeStep()
        tracker.stepRecorded()
        let second = tracker.takeStep()
        #expect(first?.to == mark(1))
        #expect(early == nil)
        #expect(second?.to == mark(2))
    }

    @Test func `the window counts what a crash would repeat, even while a step is recorded`() {
        var tracker = DeliveryTracker(mark: .start, window: 2)
        let delivery = Fixtures.delivery(at: 1)
        let ticket = tracker.admit(delivery, at: Fixtures.moment)
        #expect(tracker.room == 1)
        tracker.settle(ticket, accepted(delivery))
        let step = tracker.takeStep()
        #expect(step != nil)
        #expect(tracker.room == 1)
        tracker.stepRecorded()
        #expect(tracker.room == 2)
    }

    @Test func `a second answer to the same ticket is ignored`() {
        var tracker = DeliveryTracker(mark: .start, window: 2)
        let delivery = Fixtures.delivery(at: 1)
        let ticket = tracker.admit(delivery, at: Fixtures.moment)
        tracker.settle(ticket, accepted(delivery))
        tracker.settle(ticket, deferred(delivery))
        let step = tracker.takeStep()
        #expect(step?.receipts.count == 1)
        #expect(step?.retries == [])
    }

    @Test func `a retry is settled beside the log, and its row ends`() {
        var tracker = DeliveryTracker(mark: mark(9), window: 2)
        let retry = Retry(
            delivery: Fixtures.delivery(at: 3), attempts: 2, dueAt: Fixtures.moment,
            reason: .said(""))
        let ticket = tracker.admit(retry)
        #expect(tracker.retriesInFlight == [retry.delivery.delivery.id])
        #expect(tracker.openDelivery(ticket)?.attempts == 2)
        tracker.settle(ticket, accepted(retry.delivery))
        let step = tracker.takeStep()
        #expect(step?.from == step?.to)
        #expect(step?.endedRetries == [retry.delivery.delivery.id])
        // Until the end is durable, the row still reads as due, and must not be taken up again.
        #expect(tracker.retriesInFlight == [retry.delivery.delivery.id])
        tracker.stepRecorded()
        #expect(tracker.retriesInFlight == [])
    }

    @Test func `passing the end of an entry never moves the progress back`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let deliveries = [Fixtures.delivery(at: 1), Fixtures.delivery(at: 2)]
        let first = tracker.admit(deliveries[0], at: Fixtures.moment)
        tracker.finish(LogPosition(1))
        let second = tracker.admit(deliveries[1], at: Fixtures.moment)
        tracker.settle(first, accepted(deliveries[0]))
        tracker.settle(second, accepted(deliveries[1]))
        let step = tracker.takeStep()
        #expect(step?.to == mark(1, 1))
    }

    @Test func `a slow delivery becomes a retry, and its answer still settles it`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let slow = Fixtures.delivery(at: 1)
        let quick = Fixtures.delivery(at: 2)
        let slowTicket = tracker.admit(slow, at: Fixtures.moment)
        let quickTicket = tracker.admit(quick, at: Fixtures.moment)
        tracker.finish(LogPosition(2))
        tracker.settle(quickTicket, accepted(quick))
        let later = Fixtures.moment.advanced(by: .seconds(5))
        let adopted = tracker.adoptDeliveries(openSinceBefore: later, at: later)
        let step = tracker.takeStep()
        #expect(adopted == [RetryLane(of: slow.delivery)])
        #expect(step?.to == mark(2))
        #expect(step?.retries.map(\.delivery) == [slow])
        tracker.stepRecorded()
        #expect(tracker.openDelivery(slowTicket)?.attempts == 0)
        tracker.settle(slowTicket, accepted(slow))
        let last = tracker.takeStep()
        #expect(last?.endedRetries == [slow.delivery.id])
    }

    @Test func `a slow delivery that is answered before its row is written leaves no row`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let slow = Fixtures.delivery(at: 1)
        let ticket = tracker.admit(slow, at: Fixtures.moment)
        tracker.finish(LogPosition(1))
        let later = Fixtures.moment.advanced(by: .seconds(5))
        _ = tracker.adoptDeliveries(openSinceBefore: later, at: later)
        tracker.settle(ticket, accepted(slow))
        let step = tracker.takeStep()
        // A row that is written after the delivery has ended would be sent once more.
        #expect(step?.retries == [])
        #expect(step?.receipts.map(\.outcome) == [.deferred, .accepted])
        #expect(step?.to == mark(1))
    }

    @Test func `adopted deliveries leave the window, but are bounded by as many again`() {
        var tracker = DeliveryTracker(mark: .start, window: 2)
        var tickets: [DeliveryTracker.Ticket] = []
        var rooms: [Int] = []
        for position: UInt64 in 1...4 {
            tickets.append(tracker.admit(Fixtures.delivery(at: position), at: Fixtures.moment))
            tracker.finish(LogPosition(position))
            let later = Fixtures.moment.advanced(by: .seconds(5))
            _ = tracker.adoptDeliveries(openSinceBefore: later, at: later)
            _ = tracker.takeStep()
            tracker.stepRecorded()
            rooms.append(tracker.room)
        }
        #expect(rooms == [2, 2, 1, 0])
        #expect(tracker.openRetries == 0)
        tracker.settle(tickets[0], accepted(Fixtures.delivery(at: 1)))
        // Until its end is durable, a crash would repeat the delivery.
        #expect(tracker.room == 0)
        let step = tracker.takeStep()
        #expect(step?.endedRetries.count == 1)
        #expect(tracker.room == 0)
        tracker.stepRecorded()
        #expect(tracker.room == 1)
        #expect(tracker.openRetries == 0)
    }

    @Test func `an entry may be finished after deliveries of the next one are passed`() {
        // A batch ends in the middle of entry 5, and is longer than the window's room.
        var tracker = DeliveryTracker(mark: .start, window: 1)
        let first = Fixtures.delivery(at: 5)
        tracker.settle(tracker.admit(first, at: Fixtures.moment), accepted(first))
        let step = tracker.takeStep()
        #expect(step?.to == mark(4, 1))
        tracker.stepRecorded()
        tracker.finish(LogPosition(4))
        #expect(tracker.takeStep() == nil)
        tracker.finish(LogPosition(5))
        #expect(tracker.takeStep()?.to == mark(5))
    }

    @Test func `a retry stays in flight until its end is durable`() {
        var tracker = DeliveryTracker(mark: .start, window: 2)
        let retry = Retry(
            delivery: Fixtures.delivery(at: 1), attempts: 1, dueAt: Fixtures.moment,
            reason: .said("503"))
        let ticket = tracker.admit(retry)
        var open = [tracker.openRetries]
        tracker.settle(ticket, accepted(retry.delivery))
        open.append(tracker.openRetries)
        _ = tracker.takeStep()
        open.append(tracker.openRetries)
        // Meanwhile another retry settles, which the step does not include.
        let later = Retry(
            delivery: Fixtures.delivery(at: 2), attempts: 1, dueAt: Fixtures.moment,
            reason: .said("503"))
        tracker.settle(tracker.admit(later), accepted(later.delivery))
        open.append(tracker.openRetries)
        tracker.stepRecorded()
        open.append(tracker.openRetries)
        _ = tracker.takeStep()
        tracker.stepRecorded()
        open.append(tracker.openRetries)
        #expect(open == [1, 1, 1, 2, 1, 0])
    }

    @Test func `a step that could not be recorded is offered again unchanged`() {
        var tracker = DeliveryTracker(mark: .start, window: 2)
        tracker.finish(LogPosition(1))
        let step = tracker.takeStep()
        tracker.finish(LogPosition(2))
        let other = tracker.takeStep()
        #expect(tracker.unrecordedStep == step)
        #expect(other == nil)
        tracker.stepRecorded()
        #expect(tracker.unrecordedStep == nil)
    }

    @Test func `a step has the last badge of each device that it passes`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        for badge in [Int64(1), 2, 3] {
            let delivery = Fixtures.delivery(at: UInt64(badge), badge: badge)
            let ticket = tracker.admit(delivery, at: Fixtures.moment)
            if badge < 3 { tracker.settle(ticket, accepted(delivery)) }
        }
        let step = tracker.takeStep()
        #expect(step.map { Array($0.badges.values) } == [2])
    }

    @Test func `admitting out of order is a programming error`() async {
        await #expect(processExitsWith: .failure) {
            var tracker = DeliveryTracker(mark: .start, window: 4)
            _ = tracker.admit(Fixtures.delivery(at: 2), at: Fixtures.moment)
            _ = tracker.admit(Fixtures.delivery(at: 1), at: Fixtures.moment)
        }
    }
}
