package import RelayModel

/// The deliveries that ended without success, and what an operator can do with them.
package protocol DeadLetterRegistry: Sendable {
    /// Returns dead letters, newest first, at most `limit`.
    func deadLetters(
        of container: ContainerKey, reason: String?, limit: Int
    ) async throws -> [DeadLetter]
    /// Turns dead letters into retries that are due at `now`.
    ///
    /// Expired ones stay dead letters.
    func redriveDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?, at now: Timestamp
    ) async throws -> Redriving
    /// Deletes dead letters and returns their number.
    func dropDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?
    ) async throws -> Int
}

/// The result of redriving dead letters.
package struct Redriving: Sendable, Hashable {
    /// The number of dead letters that are retries now.
    package var redriven = 0
    /// The number of dead letters whose notification has expired.
    ///
    /// They stay dead letters, because a retry would only end again.
    package var expired = 0

    package init(redriven: Int = 0, expired: Int = 0) {
        self.redriven = redriven
        self.expired = expired
    }
}
