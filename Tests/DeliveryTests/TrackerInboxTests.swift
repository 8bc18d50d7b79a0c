import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

/// Inbox entries are recorded with the step that passes the deliveries before them.
@Suite struct TrackerInboxTests {
    private func entry(_ position: UInt64) -> InboxEntry {
        InboxEntry(
            owner: InboxOwner(container: Fixtures.container, user: Fixtures.identifier("alice")),
            position: LogPosition(position), subscriptionSerial: 1,
            subscriptionID: Fixtures.identifier("s1"), database: .public,
            notificationID: UUIDBytes(high: 1, low: position), originDevice: nil,
            payload: Array("{}".utf8), at: Fixtures.moment)
    }

    @Test func `an inbox waits for the deliveries before it`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let delivery = Fixtures.delivery(at: 1)
        let ticket = tracker.admit(delivery, at: Fixtures.moment)
        let isTaken = tracker.add([entry(1)])
        tracker.finish(LogPosition(1))
        let early = tracker.takeStep()
        tracker.settle(ticket, Resolution(accepted: delivery, attempts: 1, at: Fixtures.moment))
        let step = tracker.takeStep()
        #expect(isTaken)
        #expect(early == nil)
        #expect(step?.inbox == [entry(1)])
        #expect(step?.to == ProgressMark(position: LogPosition(1), offset: 0))
    }

    @Test func `the progress never passes a change whose inbox entries are not recorded`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        for position in 1...3 as ClosedRange<UInt64> {
            _ = tracker.add([entry(position)])
            tracker.finish(LogPosition(position))
        }
        let step = tracker.takeStep()
        #expect(step?.inbox.map(\.position.rawValue) == [1, 2, 3])
        #expect(step?.to == ProgressMark(position: LogPosition(3), offset: 0))
    }

    @Test func `inbox entries are recorded even if the user has no device`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        _ = tracker.add([entry(1)])
        let step = tracker.takeStep()
        #expect(step?.inbox == [entry(1)])
        #expect(step?.to == .start)
        tracker.stepRecorded()
        let next = tracker.takeStep()
        #expect(next == nil)
    }

    @Test func `inbox entries are refused while too many wait for the store`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let portion = (1...512).map { entry(UInt64($0)) }
        var taken = 0
        while tracker.add(portion) { taken += 1 }
        #expect(taken == Limits.maximumInboxEntriesWaiting / 512)
        let step = tracker.takeStep()
        tracker.stepRecorded()
        let isTaken = tracker.add(portion)
        #expect(step?.inbox.count == taken * 512)
        #expect(isTaken)
    }
}
