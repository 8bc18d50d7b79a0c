import DequeModule
import RelayModel
import Storage

/// Deliveries in the order in which they are owed, each open or settled: the log has such a window,
/// and each range.
///
/// They settle in any order and are passed in theirs. A number names a place for as long as the
/// window lives.
struct SettlingWindow: Sendable {
    private enum Place: Sendable {
        case open(OwedDelivery, since: Timestamp?)
        case settled(Settled)
        /// What follows is not passed as long as it is shut.
        case gate(isShut: Bool)
    }

    /// What is kept of a settled delivery until it is passed.
    struct Settled: Sendable {
        let resolution: Resolution
        let badge: (holder: BadgeHolder, number: Int64)?
        let ordinal: DeliveryOrdinal

        /// Adds to a step that passes the delivery what became of it, and its badge.
        func record(in step: inout SettledStep) {
            resolution.record(in: &step, origin: .log)
            if let badge { step.badges[badge.holder] = badge.number }
        }
    }

    private var places: Deque<Place> = []
    /// The number of the first delivery that is not passed.
    private(set) var first: UInt64 = 0

    /// How many are admitted and not passed.
    var count: Int { places.count }

    /// The number of the delivery that is admitted next.
    var end: UInt64 { first + UInt64(places.count) }

    /// Admits a delivery, and returns its number.
    ///
    /// `since` is when it was sent, if a slow answer is to be noticed.
    mutating func admit(_ delivery: OwedDelivery, since: Timestamp? = nil) -> UInt64 {
        places.append(.open(delivery, since: since))
        return end - 1
    }

    /// Puts a gate behind what was admitted, and returns its number.
    mutating func shut() -> UInt64 {
        places.append(.gate(isShut: true))
        return end - 1
    }

    /// Opens a gate.
    mutating func open(gate number: UInt64) {
        guard let index = index(of: number), case .gate = places[index] else { return }
        places[index] = .gate(isShut: false)
    }

    /// The delivery with a number, if it is open.
    func openDelivery(_ number: UInt64) -> OwedDelivery? {
        guard let index = index(of: number), case .open(let delivery, _) = places[index] else {
            return nil
        }
        return delivery
    }

    /// Whether the delivery with a number is open.
    func isOpen(_ number: UInt64) -> Bool {
        guard let index = index(of: number), case .open = places[index] else { return false }
        return true
    }

    /// Settles an open delivery; one that is not open is ignored.
    mutating func settle(_ number: UInt64, _ resolution: Resolution) {
        guard let index = index(of: number), case .open(let owed, _) = places[index] else {
            return
        }
        let delivery = owed.delivery
        let badge = delivery.badge.map { number in
            let holder = BadgeHolder(
                container: delivery.container, deviceID: delivery.deviceID, owner: delivery.owner)
            return (holder: holder, number: number)
        }
        places[index] = .settled(
            Settled(resolution: resolution, badge: badge, ordinal: delivery.ordinal))
    }

    /// Passes the first delivery, if it is settled.
    mutating func passFirst() -> Settled? {
        while case .gate(isShut: false)? = places.first {
            places.removeFirst()
            first += 1
        }
        guard case .settled(let settled)? = places.first else { return nil }
        places.removeFirst()
        first += 1
        return settled
    }

    /// The deliveries at the front that are open since before `limit`.
    func open(sinceBefore limit: Timestamp) -> [(number: UInt64, delivery: OwedDelivery)] {
        var slow: [(number: UInt64, delivery: OwedDelivery)] = []
        for (index, place) in places.enumerated() {
            guard case .open(let delivery, let since?) = place else { continue }
            guard since < limit else { break }
            slow.append((first + UInt64(index), delivery))
        }
        return slow
    }

    /// The clock goes `step` later than it did.
    mutating func clockWasSetBack(by step: Duration) {
        for index in places.indices {
            if case .open(let delivery, let since?) = places[index] {
                places[index] = .open(delivery, since: since.back(by: step))
            }
        }
    }

    private func index(of number: UInt64) -> Int? {
        guard first <= number, number < end else { return nil }
        return Int(number - first)
    }
}
