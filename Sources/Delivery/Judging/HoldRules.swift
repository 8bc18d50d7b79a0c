package import RelayModel

/// Whether a delivery is held back for its recipient's sake, by what its subscription and its
/// device ask for.
///
/// Only that and the moment decide. What is held becomes a row, and is judged again when its time
/// has come, or when what held it was edited.
package struct HoldRules: Sendable {
    /// How long something is held.
    package struct Hold: Sendable, Hashable {
        /// Why.
        package let reason: HoldReason
        /// When the hold ends; `nil` until somebody says so.
        package let until: Timestamp?

        /// It finds no place before `moment`.
        package static func throttled(until moment: Timestamp) -> Hold {
            Hold(reason: .throttle, until: moment)
        }

        /// It waits for what the connection of its device proves.
        package static func connected(since now: Timestamp) -> Hold {
            Hold(reason: .connected, until: now.advanced(by: patienceWithConnections))
        }
    }

    /// How long a push waits for what its device's connection proves.
    ///
    /// A ping is answered after a round trip; a radio that sleeps takes seconds to wake.
    package static let patienceWithConnections = Duration.seconds(10)

    private var zones = ZoneClock()

    /// Remembers nothing yet.
    package init() {}

    /// What holds `delivery` back at `now`; `nil` if nothing does.
    ///
    /// First what lasts longest. What shows nothing disturbs nobody.
    ///
    /// What was sent before, or stands for others already, is not put into another digest.
    package mutating func hold(
        on delivery: OwedDelivery, attempts: UInt16 = 0, at now: Timestamp
    ) -> Hold? {
        guard let kindness = delivery.kindness else { return nil }
        if kindness.subscription.isPaused { return Hold(reason: .paused, until: nil) }
        if let digest = kindness.subscription.digest, attempts == 0,
            delivery.delivery.standsFor == nil
        {
            let end = now.advanced(by: .seconds(digest.seconds))
            // It would only be held again.
            let morning = quietEnd(kindness, delivery.delivery, at: end)
            return Hold(reason: .digest, until: morning ?? end)
        }
        if let until = quietEnd(kindness, delivery.delivery, at: now) {
            return Hold(reason: .quietHours, until: until)
        }
        return nil
    }

    private mutating func quietEnd(
        _ kindness: Kindness, _ delivery: Delivery, at now: Timestamp
    ) -> Timestamp? {
        guard let hours = kindness.device.quietHours, !kindness.subscription.isUrgent,
            delivery.notification.pushType == .alert
        else { return nil }
        return hours.end(at: now) { zones.offset(of: hours.timeZone, at: $0) }
    }
}
