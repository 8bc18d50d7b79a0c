import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Delivery

/// Compares the tracker with a plain model of its promise.
///
/// Every delivery of the log ends exactly once in the durable record, for any interleaving and any
/// number of crashes. A crash repeats no more than the window.
@Suite struct DeliveryTrackerModelTests {
    /// The durable side: what the steps have recorded.
    private struct Ledger {
        var mark = ProgressMark.start
        var ended: [DeliveryID: Int] = [:]
        var retries: [DeliveryID: Retry] = [:]

        mutating func record(_ step: SettledStep) {
            #expect(step.from == mark)
            #expect(mark <= step.to)
            mark = step.to
            // The order is that of the store: a row that a step writes is not ended by the same
            // step.
            for id in step.endedRetries { retries[id] = nil }
            for retry in step.retries { retries[retry.delivery.delivery.id] = retry }
            for receipt in step.receipts where receipt.outcome != .deferred {
                ended[receipt.deliveryID, default: 0] += 1
            }
        }
    }

    /// The log, as the number of deliveries that each entry owes.
    private let fanouts: [UInt32] = [0, 3, 1, 0, 0, 7, 2, 1, 0, 5, 1, 1, 4, 0]

    private var owed: Set<DeliveryID> {
        Set(
            fanouts.enumerated().flatMap { index, count in
                (0..<count).map { Fixtures.delivery(at: UInt64(index + 1), $0).delivery.id }
            })
    }

    @Test(arguments: Seeds.all) func `no delivery is lost, and crashes repeat at most the window`(
        seed: UInt64
    ) {
        for round in 0..<200 {
            var generator = SeededGenerator(seed: seed &* 1000 &+ UInt64(round))
            var ledger = Ledger()
            var crashes = 0
            var sends: [DeliveryID: Int] = [:]
            let window = Int.random(in: 1...6, using: &generator)
            while true {
                let mayCrash = crashes < 5
                if run(&ledger, &sends, window, mayCrash: mayCrash, &generator) { break }
                crashes += 1
            }
            #expect(Set(ledger.ended.keys) == owed)
            #expect(ledger.ended.values.allSatisfy { $0 == 1 })
            #expect(ledger.retries.isEmpty)
            #expect(ledger.mark == ProgressMark(position: LogPosition(14), offset: 0))
            // A delivery of the log that is sent again as a first attempt is a repetition.
            let repetitions = sends.values.reduce(0, +) - sends.count
            #expect(repetitions <= crashes * window)
        }
    }

    /// Works until everything is settled (returns true) or the process crashes (returns false).
    ///
    /// Only `ledger` survives a crash.
    private func run(
        _ ledger: inout Ledger, _ sends: inout [DeliveryID: Int], _ window: Int, mayCrash: Bool,
        _ generator: inout SeededGenerator
    ) -> Bool {
        var tracker = DeliveryTracker(mark: ledger.mark, window: window)
        var log = pending(after: ledger.mark)
        var open: [DeliveryTracker.Ticket] = []
        var step: SettledStep?
        while true {
            if mayCrash, generator.chance(3) { return false }
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1: admit(&tracker, &log, &open, &sends)
            case 2: settle(&tracker, &open, &generator)
            case 3 where step == nil: step = tracker.takeStep()
            case 4:
                if let taken = step {
                    ledger.record(taken)
                    tracker.stepRecorded()
                    step = nil
                }
            case 5:
                if generator.chance(20) {
                    _ = tracker.adoptDeliveries(
                        openSinceBefore: Fixtures.moment.advanced(by: .seconds(1)),
                        at: Fixtures.moment)
                } else if let retry = ledger.retries.values.first(where: {
                    !tracker.retriesInFlight.contains($0.delivery.delivery.id)
                }), tracker.retriesInFlight.count < 4 {
                    open.append(tracker.admit(retry))
                }
            default: break
            }
            if log.isEmpty, open.isEmpty, step == nil, ledger.retries.isEmpty,
                tracker.inFlight == 0, ledger.mark.position == LogPosition(14)
            {
                return true
            }
        }
    }

    private enum LogItem {
        case delivery(OwedDelivery)
        case end(LogPosition)
    }

    private func pending(after mark: ProgressMark) -> [LogItem] {
        var items: [LogItem] = []
        for (index, count) in fanouts.enumerated() {
            let position = UInt64(index + 1)
            guard mark.position < LogPosition(position) else { continue }
            let first = position == mark.position.rawValue + 1 ? mark.offset : 0
            for offset in first..<max(first, count) {
                items.append(.delivery(Fixtures.delivery(at: position, offset)))
            }
            items.append(.end(LogPosition(position)))
        }
        return items.reversed()
    }

    private func admit(
        _ tracker: inout DeliveryTracker, _ log: inout [LogItem],
        _ open: inout [DeliveryTracker.Ticket], _ sends: inout [DeliveryID: Int]
    ) {
        switch log.last {
        case .delivery(let delivery)?:
            guard tracker.room > 0 else { return }
            open.append(tracker.admit(delivery, at: Fixtures.moment))
            sends[delivery.delivery.id, default: 0] += 1
            log.removeLast()
        case .end(let position)?:
            tracker.finish(position)
            log.removeLast()
        case nil: break
        }
    }

    private func settle(
        _ tracker: inout DeliveryTracker, _ open: inout [DeliveryTracker.Ticket],
        _ generator: inout SeededGenerator
    ) {
        guard let index = open.indices.randomElement(using: &generator) else { return }
        let ticket = open.remove(at: index)
        guard let (delivery, attempts) = tracker.openDelivery(ticket) else { return }
        let resolution =
            generator.chance(30) && attempts < 3
            ? Resolution(
                retry: Retry(
                    delivery: delivery, attempts: attempts + 1, dueAt: Fixtures.moment,
                    reason: .said("later")), status: 503, at: Fixtures.moment)
            : Resolution(accepted: delivery, attempts: attempts + 1, at: Fixtures.moment)
        tracker.settle(ticket, resolution)
    }
}
