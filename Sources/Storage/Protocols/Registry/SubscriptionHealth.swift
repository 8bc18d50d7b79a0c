package import RelayModel

/// How a version of a subscription has fared since it was saved.
///
/// The numbers count the changes that the progress has passed, so a crash neither repeats nor loses
/// a count.
package struct SubscriptionHealth: Sendable, Hashable {
    /// One event in the life of a subscription, caused by a change.
    package struct Event<Detail: Sendable & Hashable>: Sendable, Hashable {
        /// The change.
        package var position: LogPosition
        /// The moment of the event: the end of the delivery if one ended, otherwise the moment at
        /// which the change was appended.
        package var at: Timestamp
        /// What else the event says.
        package var detail: Detail

        package init(position: LogPosition, at: Timestamp, detail: Detail) {
            self.position = position
            self.at = at
            self.detail = detail
        }
    }

    /// The detail of an event that has none.
    package struct Nothing: Sendable, Hashable {
        package init() {}
    }

    /// The number of changes that fired the subscription.
    package var fired = 0
    /// The last firing.
    package var lastFired: Event<Nothing>?
    /// The number of firings that reached no device, by reason.
    package var unreached: [UnreachedFiring.Reason: Int] = [:]
    /// The last firing that reached no device.
    package var lastUnreached: Event<UnreachedFiring.Reason>?
    /// The number of deliveries that ended without success.
    package var undelivered = 0
    /// The last such delivery, with the reason.
    package var lastUndelivered: Event<String>?
    /// The number of evaluations of the condition that had an error.
    package var errors = 0
    /// The last evaluation with an error.
    package var lastError: Event<Nothing>?

    /// Creates the health of a subscription without events.
    package init() {}

    /// Adds the events of a later period.
    package mutating func add(_ later: SubscriptionHealth) {
        fired += later.fired
        unreached.merge(later.unreached, uniquingKeysWith: +)
        undelivered += later.undelivered
        errors += later.errors
        lastFired = Self.later(lastFired, later.lastFired)
        lastUnreached = Self.later(lastUnreached, later.lastUnreached)
        lastError = Self.later(lastError, later.lastError)
        // Deliveries end in any order.
        lastUndelivered = later.lastUndelivered ?? lastUndelivered
    }

    private static func later<Detail>(
        _ one: Event<Detail>?, _ other: Event<Detail>?
    ) -> Event<Detail>? {
        guard let one, let other else { return one ?? other }
        return one.position > other.position ? one : other
    }
}
