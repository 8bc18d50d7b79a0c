package import RelayModel

/// Decides when a delivery is tried again, and when no more.
package struct RetryPolicy: Sendable, Hashable {
    /// The longest wait before the second attempt.
    package var base: Duration
    /// The longest wait before any attempt.
    ///
    /// Apple asks for a quarter of an hour after a 5xx.
    package var cap: Duration
    /// Sends of one delivery before it becomes a dead letter.
    package var maximumAttempts: Int

    /// Creates a policy that starts at two seconds and doubles up to a quarter of an hour.
    package init(
        base: Duration = .seconds(2), cap: Duration = .seconds(900),
        maximumAttempts: Int = Limits.maximumDeliveryAttempts
    ) {
        precondition(maximumAttempts > 0)
        self.base = base
        self.cap = cap
        self.maximumAttempts = maximumAttempts
    }

    /// When attempt `attempts + 1` falls due, or `nil` if there is none: the attempts are used up,
    /// or the notification would have expired by then.
    ///
    /// The wait is drawn from the whole step (full jitter), because attempts that failed together
    /// would otherwise come back together; it is never shorter than what the gateway asks for.
    package func dueAt(
        afterAttempts attempts: UInt16, now: Timestamp, expiration: Timestamp?,
        atLeast asked: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Timestamp? {
        precondition(attempts > 0)
        guard Int(attempts) < maximumAttempts else { return nil }
        let step = min(base * (1 << min(Int(attempts) - 1, 20)), cap)
        let drawn = step * Double.random(in: 0..<1, using: &generator)
        // What the gateway asks for is spread too, by a tenth, for the same reason.
        let least = (asked ?? .zero) * (1 + Double.random(in: 0..<0.1, using: &generator))
        let due = now.advanced(by: max(drawn, least))
        if let expiration, expiration <= due { return nil }
        return due
    }
}
