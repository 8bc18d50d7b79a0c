package import RelayModel

/// Decides when a delivery is tried again, and when no more.
package struct RetryPolicy: Sendable, Hashable {
    /// The longest wait before the second attempt.
    package var base: Duration
    /// The longest wait before any attempt.
    ///
    /// Apple asks for a quarter of an hour after a 5xx.
    package var cap: Duration
    /// The longest wait that a gateway's wish is granted.
    package var longestWish: Duration = .seconds(86_400)
    /// With less time than this before the deadline there is no further attempt.
    package var leastRemainder: Duration = .milliseconds(250)
    /// Sends of one delivery that the gateway answers before it becomes a dead letter.
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

    /// When the attempt after `failures` that failed in a row falls due, or `nil` if that would be
    /// after the deadline.
    ///
    /// The wait is drawn from the whole step (full jitter), because attempts that failed together
    /// would otherwise come back together. Near the deadline the step is what is left of the time,
    /// so that no draw passes it; only what the gateway asks for does, which is never cut short.
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
        // What the gateway asks for is spread too, by a tenth, for the same reason.
        let spread = wish * (1 + Double.random(in: 0..<0.1, using: &generator))
        let due = now.advanced(by: max(drawn, spread))
        guard let deadline, deadline <= due else { return due }
        let granted = now.advanced(by: wish)
        return granted < deadline ? granted : nil
    }
}
