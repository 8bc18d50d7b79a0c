package import RelayModel

/// Decides whether a delivery is held back for its recipient's sake, by the settings of its
/// subscription and its device.
///
/// Only these settings and the time decide. A held delivery becomes a row. It is judged again when
/// its time has come, or when the settings that hold it are edited.
package struct HoldRules: Sendable {
    /// The hold of one delivery.
    package struct Hold: Sendable, Hashable {
        /// The reason.
        package let reason: HoldReason
        /// The time when the hold ends, or `nil` if it lasts until the recipient ends it.
        package let until: Timestamp?

        /// The hold of a delivery for which the throttle has no place before `moment`.
        package static func throttled(until moment: Timestamp) -> Hold {
            Hold(reason: .throttle, until: moment)
        }

        /// The hold of a delivery that waits for proof that the device heard of it over its
        /// connection.
        package static func connected(since now: Timestamp) -> Hold {
            Hold(reason: .connected, until: now.advanced(by: patienceWithConnections))
        }
    }

    /// How long a push waits for the proof from its device's connection.
    ///
    /// A ping is answered after a round trip. A sleeping radio takes seconds to wake.
    package static let patienceWithConnections = Duration.seconds(10)

    private var zones = ZoneClock()

    /// Creates rules that have read no time zone yet.
    package init() {}

    /// Returns what holds `delivery` back at `now`, or `nil` if nothing does.
    ///
    /// The longest kind of hold is checked first. A silent push does not disturb its recipient, so
    /// quiet hours do not hold it. A delivery that was attempted before, or already stands for
    /// others, is not put into another digest.
    package mutating func hold(
        on delivery: OwedDelivery, attempts: UInt16 = 0, at now: Timestamp
    ) -> Hold? {
        guard let kindness = delivery.kindness else { return nil }
        if kindness.subscription.isPaused { return Hold(reason: .paused, until: nil) }
        if let digest = kindness.subscription.digest, attempts == 0,
            delivery.delivery.standsFor == nil
        {
            let end = now.advanced(by: .seconds(digest.seconds))
            // Ending within quiet hours, it would only be held again.
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
