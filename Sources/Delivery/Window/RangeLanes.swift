import RelayModel
import Storage

/// The open deliveries of ranges.
///
/// Each range has a window like the log's, so that a crash repeats at most what was admitted and
/// not yet passed.
///
/// - Invariant: the open and settled deliveries of all lanes, and those of a step on its way, are
///   never more than the window.
struct RangeLanes: Sendable {
    private struct Lane: Sendable {
        let id: UInt64
        /// The number of deliveries of the range that are passed.
        var passed: UInt32
        var window = SettlingWindow()
        var isComplete = false
        /// The firings of the range, once it is complete.
        var firing: FiringNote?
    }

    let window: Int
    private var lanes: [UInt64: Lane] = [:]
    private var numbers: [UInt64: UInt64] = [:]
    private var nextNumber: UInt64 = 0
    private var held = 0
    private var onTheirWay = 0

    init(window: Int) {
        self.window = window
    }

    /// The number of deliveries for which there is room.
    var room: Int { max(0, window - held - onTheirWay) }

    /// The number of deliveries that are admitted and not yet passed.
    var inFlight: Int { held + onTheirWay }

    /// Admits a delivery to the lane of its range, which begins at `offset` if it is new.
    mutating func admit(
        _ delivery: OwedDelivery, range: UInt64, offset: UInt32
    ) -> DeliveryTracker.Ticket {
        precondition(room > 0, "admitted beyond the window")
        let number = lane(of: range, offset: offset)
        held += 1
        return .range(lane: number, number: lanes[number]?.window.admit(delivery) ?? 0)
    }

    /// Notes that every delivery of a range was admitted.
    mutating func finish(_ range: UInt64, offset: UInt32, firing: FiringNote?) {
        let number = lane(of: range, offset: offset)
        lanes[number]?.isComplete = true
        lanes[number]?.firing = firing
    }

    private mutating func lane(of range: UInt64, offset: UInt32) -> UInt64 {
        if let number = numbers[range] { return number }
        let number = nextNumber
        nextNumber += 1
        numbers[range] = number
        lanes[number] = Lane(id: range, passed: offset)
        return number
    }

    /// Returns the delivery with a number in a lane, if it is open.
    func openDelivery(_ number: UInt64, of lane: UInt64) -> OwedDelivery? {
        lanes[lane]?.window.openDelivery(number)
    }

    /// Settles an open delivery.
    ///
    /// A delivery that is not open is ignored.
    mutating func settle(_ number: UInt64, of lane: UInt64, _ resolution: Resolution) {
        // The lane is edited in place, because a copy of it would copy all of its window.
        lanes[lane]?.window.settle(number, resolution)
    }

    /// Adds to a step what the ranges may pass.
    mutating func pass(into step: inout SettledStep) {
        for number in lanes.keys.sorted() {
            guard var lane = lanes.removeValue(forKey: number) else { continue }
            let from = lane.passed
            while let settled = lane.window.passFirst() {
                lane.passed += 1
                held -= 1
                onTheirWay += 1
                settled.record(in: &step)
            }
            let isFinished = lane.isComplete && lane.window.count == 0
            if isFinished || lane.passed != from {
                step.rangeSteps.append(
                    RangeStep(id: lane.id, from: from, to: lane.passed, isFinished: isFinished))
            }
            guard isFinished else {
                lanes[number] = lane
                continue
            }
            numbers[lane.id] = nil
            if let firing = lane.firing { step.firings.append(firing) }
        }
    }

    /// Notes that the last step is durable.
    mutating func stepRecorded() {
        onTheirWay = 0
    }
}
