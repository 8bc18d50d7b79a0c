package import RelayModel

/// Deliveries that ended without success, and what an operator does with them.
package protocol DeadLetterRegistry: Sendable {
    /// Dead letters, the newest first, at most `limit`.
    func deadLetters(
        of container: ContainerKey, reason: String?, limit: Int
    ) async throws -> [DeadLetter]
    /// Turns dead letters into retries that are due at `now`; those that have expired stay.
    func redriveDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?, at now: Timestamp
    ) async throws -> Redriving
    /// Deletes dead letters; returns how many.
    func dropDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?
    ) async throws -> Int
}

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
