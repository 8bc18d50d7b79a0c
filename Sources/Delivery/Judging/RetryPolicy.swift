package import RelayModel

/// Decides when a delivery is tried again, and when it is not.
package struct RetryPolicy: Sendable, Hashable {
    /// The longest wait before the second attempt.
    package var base: Duration
    /// The longest wait before any attempt.
    ///
    /// Apple asks for a wait of a quarter of an hour after a 5xx.
    package var cap: Duration
    /// The longest wait that is granted to a gateway that asks for one.
    package var longestWish: Duration = .seconds(86_400)
    /// The least time that must be left before the deadline for a further attempt.
    package var leastRemainder: Duration = .milliseconds(250)
    /// The number of attempts answered by the gateway after which a delivery becomes a dead letter.
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

    /// Returns the time of the next attempt after `failures` consecutive failures, or `nil` if it
    /// would be after the deadline.
    ///
    /// The wait is drawn from the whole step (full jitter), because attempts that failed together
    /// would otherwise come back together. Near the deadline the step is the remaining time, so
    /// that no draw exceeds it. A wait that the gateway asks for is never cut short, and may exceed
    /// the deadline.
    package func dueAt(
        afterFailures failures: Int, now: Timestamp, deadline: Timestamp?,
        atLeast asked: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Timestamp? {
        precondition(failures > 0)
        var step = min(base * (1 << min(failures - 1, 20)), cap)
        if let deadline {
            let left = deadline.duration(since: now)
            guard leastRemainder <= left else { return nil }
            step = min(step, left)
        }
        let drawn = step * Double.random(in: 0..<1, using: &generator)
        let wish = min(asked ?? .zero, longestWish)
        // The wait that the gateway asks for is also spread, by a tenth, for the same reason.
        let spread = wish * (1 + Double.random(in: 0..<0.1, using: &generator))
        let due = now.advanced(by: max(drawn, spread))
        guard let deadline, deadline <= due else { return due }
        let granted = now.advanced(by: wish)
        return granted < deadline ? granted : nil
    }
}
