package import RelayModel

/// What was active at a position of the shard's log, for the follower's start.
package protocol ActiveVersions: Sendable {
    /// The versions active at `position`, by ascending serial, after `serial`, at most `limit`.
    func subscriptions(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [SubscriptionVersion]
    /// The versions with these serials, active or not, without those that cannot be read.
    ///
    /// One reading, because a reading that waits for its turn costs more than a row.
    func subscriptions(_ serials: [UInt64]) async throws -> [SubscriptionVersion]
    /// The versions active at `position`, by ascending serial, after `serial`, at most `limit`.
    func devices(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [DeviceVersion]
    /// The badges of all devices that have one.
    func badges() async throws -> [BadgeHolder: Int64]
}
