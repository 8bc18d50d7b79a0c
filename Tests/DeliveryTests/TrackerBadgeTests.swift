import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

/// A badge that is set counts from its entry on; a badge that was raised before does not come
/// back.
@Suite struct TrackerBadgeTests {
    private let holder = BadgeHolder(
        container: Fixtures.container, deviceID: Fixtures.identifier("phone"),
        owner: Fixtures.identifier("alice"))

    private func accepted(_ delivery: OwedDelivery) -> Resolution {
        Resolution(accepted: delivery, attempts: 1, at: Fixtures.moment)
    }

    @Test func `a badge raised before another one was set does not outlast it`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let delivery = Fixtures.delivery(at: 1, badge: 7)
        let ticket = tracker.admit(delivery, at: Fixtures.moment)
        tracker.finish(LogPosition(2), badges: [holder: 0])
        let early = tracker.takeStep()
        tracker.settle(ticket, accepted(delivery))
        let step = tracker.takeStep()
        #expect(early == nil)
        #expect(step?.badges == [holder: 0])
        #expect(step?.to == ProgressMark(position: LogPosition(2), offset: 0))
    }

    @Test func `a badge raised after one was set counts on from it`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let before = Fixtures.delivery(at: 1, badge: 7)
        let after = Fixtures.delivery(at: 3, badge: 1)
        let first = tracker.admit(before, at: Fixtures.moment)
        tracker.finish(LogPosition(2), badges: [holder: 0])
        let second = tracker.admit(after, at: Fixtures.moment)
        tracker.finish(LogPosition(3))
        tracker.settle(second, accepted(after))
        tracker.settle(first, accepted(before))
        let step = tracker.takeStep()
        #expect(step?.badges == [holder: 1])
    }

    @Test func `a badge that is set is recorded even if no delivery is owed`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        tracker.finish(LogPosition(1), badges: [holder: 3])
        let step = tracker.takeStep()
        #expect(step?.badges == [holder: 3])
    }

    @Test func `a badge whose registration waited is recorded with what it waited for`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        tracker.putOff(LogPosition(1))
        tracker.finish(LogPosition(2))
        let early = tracker.takeStep()
        tracker.makeUp(
            MadeUpChange(position: LogPosition(1), ranges: [], badges: [holder: 0]))
        let step = tracker.takeStep()
        #expect(early == nil)
        #expect(step?.badges == [holder: 0])
        #expect(step?.to == ProgressMark(position: LogPosition(2), offset: 0))
    }
}
