import DequeModule
import RelayModel
import Storage

/// The deliveries of ranges that are open: for each range a window like the log's, so that a crash
/// repeats at most what was admitted and not yet passed.
///
/// - Invariant: the open and settled deliveries of all lanes, and those of a step on its way, are
///   never more than the window.
struct RangeLanes: Sendable {
    private enum Slot: Sendable {
        case open(OwedDelivery)
        case settled(Resolution, badge: BadgeMark?)
    }

    private struct Lane: Sendable {
        let id: UInt64
        /// So many deliveries of the range are passed.
        var passed: UInt32
        /// The number of the first slot.
        var firstSlot: UInt32 = 0
        var slots: Deque<Slot> = []
        var isComplete = false
    }

    let window: Int
    private var lanes: [UInt32: Lane] = [:]
    private var numbers: [UInt64: UInt32] = [:]
    private var nextNumber: UInt32 = 0
    private var held = 0
    private var onTheirWay = 0

    init(window: Int) {
        self.window = window
    }

    /// How many more deliveries may be admitted.
    var room: Int { max(0, window - held - onTheirWay) }

    /// How many deliveries are admitted and not yet passed.
    var inFlight: Int { held + onTheirWay }

    /// Takes a delivery into the lane of its range, which begins at `offset` if it is new.
    mutating func admit(
        _ delivery: OwedDelivery, range: UInt64, offset: UInt32
    ) -> DeliveryTracker.Ticket {
        precondition(room > 0, "admitted beyond the window")
        let number = lane(of: range, offset: offset)
        let slot = lanes[number].map { $0.firstSlot &+ UInt32($0.slots.count) } ?? 0
        lanes[number]?.slots.append(.open(delivery))
        held += 1
        return DeliveryTracker.Ticket(lane: number, slot: slot)
    }

    /// Learns that every delivery of a range has been admitted.
    mutating func finish(_ range: UInt64, offset: UInt32) {
        lanes[lane(of: range, offset: offset)]?.isComplete = true
    }

    private mutating func lane(of range: UInt64, offset: UInt32) -> UInt32 {
        if let number = numbers[range] { return number }
        // The ticket has 31 bits for it; lanes live for seconds.
        let number = nextNumber & 0x7FFF_FFFF
        nextNumber &+= 1
        numbers[range] = number
        lanes[number] = Lane(id: range, passed: offset)
        return number
    }

    /// The delivery behind an open ticket.
    func openDelivery(_ ticket: DeliveryTracker.Ticket) -> OwedDelivery? {
        open(ticket)?.delivery
    }

    /// The delivery behind an open ticket, and where it stands in its lane.
    private func open(
        _ ticket: DeliveryTracker.Ticket
    ) -> (delivery: OwedDelivery, index: Int)? {
        guard let lane = lanes[ticket.lane] else { return nil }
        let index = Int(ticket.slot &- lane.firstSlot)
        guard index < lane.slots.count, case .open(let delivery) = lane.slots[index] else {
            return nil
        }
        return (delivery, index)
    }

    /// Settles an open ticket; one that is not open is ignored.
    mutating func settle(_ ticket: DeliveryTracker.Ticket, _ resolution: Resolution) {
        // No lane is held here: the assignment would copy all of its slots.
        guard let (owed, index) = open(ticket) else { return }
        let delivery = owed.delivery
        let badge = delivery.badge.map {
            BadgeMark(
                container: delivery.container, deviceID: delivery.deviceID, owner: delivery.owner,
                badge: $0)
        }
        lanes[ticket.lane]?.slots[index] = .settled(resolution, badge: badge)
    }

    /// Adds to a step what the ranges may pass.
    mutating func pass(into step: inout SettledStep) {
        for number in lanes.keys.sorted() {
            guard var lane = lanes.removeValue(forKey: number) else { continue }
            let from = lane.passed
            while case .settled(let resolution, let badge)? = lane.slots.first {
                lane.slots.removeFirst()
                lane.firstSlot &+= 1
                lane.passed += 1
                held -= 1
                onTheirWay += 1
                resolution.record(in: &step, origin: .log)
                if let badge { step.badges.append(badge) }
            }
            let isFinished = lane.isComplete && lane.slots.isEmpty
            if isFinished || lane.passed != from {
                step.rangeSteps.append(
                    RangeStep(id: lane.id, from: from, to: lane.passed, isFinished: isFinished))
            }
            if isFinished { numbers[lane.id] = nil } else { lanes[number] = lane }
        }
    }

    /// Learns that the step taken last is durable.
    mutating func stepRecorded() {
        onTheirWay = 0
    }
}

extension DeliveryTracker.Ticket {
    private static let rangeBit: UInt64 = 1 << 63

    /// The ticket of a slot in the lane of a range.
    init(lane: UInt32, slot: UInt32) {
        self.init(rawValue: Self.rangeBit | UInt64(lane) << 32 | UInt64(slot))
    }

    /// Whether the delivery is of a range.
    var isRange: Bool { rawValue & Self.rangeBit != 0 }
    /// The lane of the range.
    var lane: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) & 0x7FFF_FFFF }
    /// The slot in the lane.
    var slot: UInt32 { UInt32(truncatingIfNeeded: rawValue) }
}
