package import RelayModel

/// How a version of a subscription has fared since it was saved.
///
/// The numbers are those of the changes that the progress has passed: nothing is counted twice by a
/// crash, or missed.
package struct SubscriptionHealth: Sendable, Hashable {
    /// Something that happened by a change.
    package struct Event<Detail: Sendable & Hashable>: Sendable, Hashable {
        /// The change.
        package var position: LogPosition
        /// When: for an end of a delivery the moment of the end, otherwise when the change was
        /// appended.
        package var at: Timestamp
        /// What is to be said of it.
        package var detail: Detail

        package init(position: LogPosition, at: Timestamp, detail: Detail) {
            self.position = position
            self.at = at
            self.detail = detail
        }
    }

    /// Nothing besides.
    package struct Nothing: Sendable, Hashable {
        package init() {}
    }

    /// How many changes fired it.
    package var fired = 0
    /// The last that did.
    package var lastFired: Event<Nothing>?
    /// How many of them reached no device, by why.
    package var unreached: [UnreachedFiring.Reason: Int] = [:]
    /// The last that did not.
    package var lastUnreached: Event<UnreachedFiring.Reason>?
    /// Deliveries that ended without success.
    package var undelivered = 0
    /// The last of them, with the reason.
    package var lastUndelivered: Event<String>?
    /// How many evaluations of its condition had an error.
    package var errors = 0
    /// The last that had one.
    package var lastError: Event<Nothing>?

    /// The health of a subscription of which there is nothing to say.
    package init() {}

    /// Adds what happened later.
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
