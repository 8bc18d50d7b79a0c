import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

/// Deliveries of ranges, beside those of the log.
@Suite struct RangeLanesTests {
    private func accepted(_ delivery: OwedDelivery) -> Resolution {
        Resolution(accepted: delivery, attempts: 1, at: Fixtures.moment)
    }

    @Test func `ranges of an entry are written when the progress passes it, not before`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        let delivery = Fixtures.delivery(at: 1)
        let ticket = tracker.admit(delivery, at: Fixtures.moment)
        let range = NewRange(
            container: Fixtures.container, position: LogPosition(2), serials: [7])
        tracker.finish(LogPosition(2), ranges: [range])
        let later = Fixtures.delivery(at: 3)
        let laterTicket = tracker.admit(later, at: Fixtures.moment)
        tracker.settle(laterTicket, accepted(later))
        let early = tracker.takeStep()
        #expect(early == nil)
        tracker.settle(ticket, accepted(delivery))
        let step = tracker.takeStep()
        #expect(step?.newRanges == [range])
        #expect(step?.to == ProgressMark(position: LogPosition(2), offset: 1))
    }

    @Test func `a range that owes nothing ends`() {
        var tracker = DeliveryTracker(mark: .start, window: 4)
        tracker.finishRange(5, offset: 2)
        let step = tracker.takeStep()
        #expect(
            step?.rangeSteps == [RangeStep(id: 5, from: 2, to: 2, isFinished: true)])
    }

    /// A range, its durable offset, and how often each of its deliveries was sent.
    private struct Range {
        let id: UInt64
        let deliveries: [OwedDelivery]
        var durable: UInt32 = 0
        var isFinished = false
        var admitted = 0
        var sent: [Int]
    }

    @Test(arguments: Seeds.all)
    func `crashes repeat at most the window, and lose nothing`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let window = Int.random(in: 1...9, using: &generator)
        var ranges = (1...4).map { id in
            let count = Int.random(in: 0...12, using: &generator)
            return Range(
                id: UInt64(id),
                deliveries: (0..<count).map { Fixtures.delivery(at: UInt64(id), UInt32($0)) },
                sent: Array(repeating: 0, count: count))
        }
        for _ in 0..<20 where ranges.contains(where: { !$0.isFinished }) {
            run(&ranges, window, crashing: true, &generator)
        }
        run(&ranges, window, crashing: false, &generator)
        let isDone = ranges.allSatisfy(\.isFinished)
        let leastSent = ranges.flatMap(\.sent).min() ?? 1
        #expect(isDone && leastSent >= 1)
    }

    /// Runs one life of a process; what it sent but did not record is sent again in the next life.
    private func run(
        _ ranges: inout [Range], _ window: Int, crashing: Bool,
        _ generator: inout SeededGenerator
    ) {
        var tracker = DeliveryTracker(mark: .start, window: 1, rangeWindow: window)
        var open: [(DeliveryTracker.Ticket, OwedDelivery)] = []
        var owed: [DeliveryTally] = []
        for index in ranges.indices { ranges[index].admitted = Int(ranges[index].durable) }
        for _ in 0..<(crashing ? Int.random(in: 0...40, using: &generator) : 10_000) {
            let unsettled = ranges.filter { !$0.isFinished }
                .reduce(0) { $0 + $1.admitted - Int($1.durable) }
            #expect(unsettled <= window)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1: admit(&ranges, &tracker, &open, &generator)
            case 2:
                guard !open.isEmpty else { continue }
                let (ticket, delivery) = open.remove(
                    at: Int.random(in: open.indices, using: &generator))
                #expect(tracker.openDelivery(ticket)?.delivery == delivery)
                tracker.settle(ticket, accepted(delivery))
                tracker.settle(ticket, accepted(delivery))
            default:
                guard let step = tracker.takeStep() else { continue }
                // A crash before the step is durable ends this life.
                if crashing, generator.chance(20) { return }
                record(step, &ranges)
                owed += step.tallies.values
                tracker.stepRecorded()
            }
            if ranges.allSatisfy(\.isFinished) { return }
        }
    }

    private func admit(
        _ ranges: inout [Range], _ tracker: inout DeliveryTracker,
        _ open: inout [(DeliveryTracker.Ticket, OwedDelivery)],
        _ generator: inout SeededGenerator
    ) {
        let candidates = ranges.indices.filter {
            !ranges[$0].isFinished && ranges[$0].admitted <= ranges[$0].deliveries.count
        }
        guard let index = candidates.randomElement(using: &generator) else { return }
        let range = ranges[index]
        if range.admitted == range.deliveries.count {
            tracker.finishRange(range.id, offset: range.durable)
            ranges[index].admitted += 0
            return
        }
        guard tracker.rangeRoom > 0 else { return }
        let delivery = range.deliveries[range.admitted]
        let ticket = tracker.admit(delivery, range: range.id, offset: range.durable)
        ranges[index].sent[range.admitted] += 1
        ranges[index].admitted += 1
        open.append((ticket, delivery))
    }

    private func record(_ step: SettledStep, _ ranges: inout [Range]) {
        for part in step.rangeSteps {
            guard let index = ranges.firstIndex(where: { $0.id == part.id }) else { continue }
            #expect(part.from == ranges[index].durable && part.from <= part.to)
            #expect(!ranges[index].isFinished)
            ranges[index].durable = part.to
            ranges[index].isFinished = part.isFinished
            if part.isFinished {
                #expect(Int(part.to) == ranges[index].deliveries.count)
            }
        }
    }
}
