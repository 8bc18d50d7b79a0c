import DequeModule
import RelayModel
import Storage

/// Deliveries in the order in which they are owed, each open or settled.
///
/// The log has such a window, and so has each range.
///
/// They settle in any order and are passed in order. A number identifies a place for the lifetime
/// of the window.
struct SettlingWindow: Sendable {
    private enum Place: Sendable {
        case open(OwedDelivery, since: Timestamp?)
        case settled(Settled)
        /// Nothing after a shut gate is passed.
        case gate(isShut: Bool)
    }

    /// What is kept of a settled delivery until it is passed.
    struct Settled: Sendable {
        let resolution: Resolution
        let badge: (holder: BadgeHolder, number: Int64)?
        let ordinal: DeliveryOrdinal

        /// Adds the result of the delivery and its badge to a step that passes it.
        func record(in step: inout SettledStep) {
            resolution.record(in: &step, origin: .log)
            if let badge { step.badges[badge.holder] = badge.number }
        }
    }

    private var places: Deque<Place> = []
    /// The number of the first delivery that is not passed.
    private(set) var first: UInt64 = 0

    /// The number of places that are admitted and not passed.
    var count: Int { places.count }

    /// The number of the next admitted delivery.
    var end: UInt64 { first + UInt64(places.count) }

    /// Admits a delivery, and returns its number.
    ///
    /// `since` is the time when it was sent, if slow answers are to be detected.
    mutating func admit(_ delivery: OwedDelivery, since: Timestamp? = nil) -> UInt64 {
        places.append(.open(delivery, since: since))
        return end - 1
    }

    /// Adds a shut gate after the admitted deliveries, and returns its number.
    mutating func shut() -> UInt64 {
        places.append(.gate(isShut: true))
        return end - 1
    }

    /// Opens a gate.
    mutating func open(gate number: UInt64) {
        guard let index = index(of: number), case .gate = places[index] else { return }
        places[index] = .gate(isShut: false)
    }

    /// Returns the delivery with a number, if it is open.
    func openDelivery(_ number: UInt64) -> OwedDelivery? {
        guard let index = index(of: number), case .open(let delivery, _) = places[index] else {
            return nil
        }
        return delivery
    }

    /// Returns whether the delivery with a number is open.
    func isOpen(_ number: UInt64) -> Bool {
        guard let index = index(of: number), case .open = places[index] else { return false }
        return true
    }

    /// Settles an open delivery.
    ///
    /// A delivery that is not open is ignored.
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

    /// Passes the first delivery and returns it, if it is settled.
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

    /// Returns the deliveries at the front that have been open since before `limit`.
    func open(sinceBefore limit: Timestamp) -> [(number: UInt64, delivery: OwedDelivery)] {
        var slow: [(number: UInt64, delivery: OwedDelivery)] = []
        for (index, place) in places.enumerated() {
            guard case .open(let delivery, let since?) = place else { continue }
            guard since < limit else { break }
            slow.append((first + UInt64(index), delivery))
        }
        return slow
    }

    /// Moves all times back by `step`, by which the clock was set back.
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
