import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

/// The firings of a change are recorded by the same step that passes the change.
@Suite struct FiringStepTests {
    private static func note(_ position: UInt64) -> FiringNote {
        FiringNote(
            position: LogPosition(position), at: Sample.moment(Int64(position)),
            fired: [position])
    }

    private static func accepted(_ owed: OwedDelivery) -> Resolution {
        Resolution(accepted: owed, attempts: 1, at: Sample.moment(9))
    }

    /// Takes and records the next step; returns the positions of its firings.
    private static func step(_ tracker: inout DeliveryTracker) -> [UInt64]? {
        guard let step = tracker.takeStep() else { return nil }
        tracker.stepRecorded()
        return step.firings.map(\.position.rawValue)
    }

    @Test func `firings of an entry without deliveries are recorded with the progress`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let isTaken = tracker.add(firings: [Self.note(1), Self.note(2)])
        #expect(isTaken)
        #expect(Self.step(&tracker) == nil)
        tracker.finish(LogPosition(1))
        #expect(Self.step(&tracker) == [1])
        tracker.finish(LogPosition(2))
        #expect(Self.step(&tracker) == [2])
        #expect(Self.step(&tracker) == nil)
    }

    @Test func `firings of an entry are recorded with its last delivery, not its first`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let owed = (0..<2).map { Sample.owed($0, at: 1) }
        let isTaken = tracker.add(firings: [Self.note(1)])
        #expect(isTaken)
        let tickets = owed.map { tracker.admit($0, at: Sample.moment(1)) }
        tracker.finish(LogPosition(1))
        tracker.settle(tickets[0], Self.accepted(owed[0]))
        #expect(Self.step(&tracker) == [])
        tracker.settle(tickets[1], Self.accepted(owed[1]))
        #expect(Self.step(&tracker) == [1])
    }

    @Test func `firings are recorded when a delivery of the next entry passes them`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let isTaken = tracker.add(firings: [Self.note(1), Self.note(2)])
        #expect(isTaken)
        let first = Sample.owed(0, at: 3)
        let ticket = tracker.admit(first, at: Sample.moment(1))
        tracker.settle(ticket, Self.accepted(first))
        // The mark is within entry 3, so a crash does not repeat entries 1 and 2.
        #expect(Self.step(&tracker) == [1, 2])
        tracker.finish(LogPosition(2))
        #expect(Self.step(&tracker) == nil)
    }

    @Test func `firings of a range are recorded with the step that ends it`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let owed = (0..<2).map { Sample.owed($0, at: 1) }
        let tickets = owed.map { tracker.admit($0, range: 7, offset: 0) }
        tracker.finishRange(7, offset: 0, firing: Self.note(1))
        tracker.settle(tickets[0], Self.accepted(owed[0]))
        #expect(Self.step(&tracker) == [])
        tracker.settle(tickets[1], Self.accepted(owed[1]))
        #expect(Self.step(&tracker) == [1])
    }

    @Test func `too many firings are refused until some are passed`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        var many = Self.note(1)
        many.fired = Array(1...UInt64(Limits.maximumFiringsWaiting))
        let isFirstTaken = tracker.add(firings: [many])
        let isSecondTaken = tracker.add(firings: [Self.note(2)])
        #expect(isFirstTaken && !isSecondTaken)
        tracker.finish(LogPosition(1))
        #expect(Self.step(&tracker) == [1])
        let isTakenAgain = tracker.add(firings: [Self.note(2)])
        #expect(isTakenAgain)
    }
}
