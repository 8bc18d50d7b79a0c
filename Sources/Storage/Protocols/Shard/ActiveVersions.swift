package import RelayModel

/// What was active at a position of the shard's log, for the follower's start.
package protocol ActiveVersions: Sendable {
    /// Returns the subscription versions active at `position` after `serial`, by ascending serial,
    /// at most `limit`.
    func subscriptions(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [SubscriptionVersion]
    /// Returns the versions with these serials, active or not, without unreadable ones.
    ///
    /// One call reads them all, because waiting for a reader costs more than reading a row.
    func subscriptions(_ serials: [UInt64]) async throws -> [SubscriptionVersion]
    /// Returns the device versions active at `position` after `serial`, by ascending serial, at
    /// most `limit`.
    func devices(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [DeviceVersion]
    /// Returns the badges of all devices that have one.
    func badges() async throws -> [BadgeHolder: Int64]
}
