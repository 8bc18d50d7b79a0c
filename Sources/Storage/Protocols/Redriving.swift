/// What became of dead letters that were to be redriven.
package struct Redriving: Sendable, Hashable {
    /// Those that are retries now.
    package var redriven = 0
    /// Those whose notification has expired: they would only end again, and stay what they are.
    package var expired = 0

    /// Counts.
    package init(redriven: Int = 0, expired: Int = 0) {
        self.redriven = redriven
        self.expired = expired
    }
}

/// The row of a delivery that did not simply succeed.
package enum DeliveryException: Sendable, Hashable {
    /// It is to be tried again.
    case retry(Retry)
    /// It ended without success.
    case deadLetter(DeadLetter)
}
