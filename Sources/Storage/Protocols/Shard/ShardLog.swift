package import RelayModel

/// One sequenced log without gaps, of changes and of edits of subscriptions and devices.
///
/// The log is the truth: what a change fires follows from the entries before it and from nothing
/// else. Every implementation honours the contract that `ShardLogConformance` checks.
package protocol ShardLog: Sendable {
    /// Returns the entries after `position` in order, at most `limit`; none at the head.
    ///
    /// - Throws: ``StorageError/unreadable(_:)`` if the next entry cannot be read.
    func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry]

    /// Returns the same entries for the follower, which does not need every change decoded.
    func followedEntries(after position: LogPosition, limit: Int) async throws -> [FollowedEntry]

    /// Sets an unreadable change aside durably, with the reason.
    func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws

    /// Sets aside a change whose conditions took too many steps, once, and records this for the
    /// subscriptions in `entry`.
    ///
    /// Subscriptions for which it happened too often are ended by a log entry.
    ///
    /// - Returns: The serials of the subscriptions that ended.
    func setAside(_ entry: DearEntry, at now: Timestamp) async throws -> [UInt64]

    /// Returns the positions after `position` of changes that were set aside and therefore fire
    /// nothing.
    func positionsSetAside(after position: LogPosition) async throws -> Set<LogPosition>

    /// Returns the position of the last entry, or ``RelayModel/LogPosition/start`` if there is
    /// none.
    func head() async throws -> LogPosition

    /// Waits until the head is beyond `position`; throws `CancellationError` if cancelled.
    func waitForGrowth(beyond position: LogPosition) async throws
}

extension ShardLog {
    /// Sets the change aside without recording it for any subscription.
    package func setAside(_ entry: DearEntry, at now: Timestamp) async throws -> [UInt64] {
        try await quarantine(
            UnreadableEntry(position: entry.position, isChange: true, reason: entry.reason),
            at: now)
        return []
    }

    /// Returns nothing: no change was set aside.
    package func positionsSetAside(
        after position: LogPosition
    ) async throws -> Set<LogPosition> {
        []
    }
}

/// One entry of the log.
package struct LogEntry: Sendable, Hashable {
    /// The position of the entry.
    package let position: LogPosition
    /// When it was appended.
    package let appendedAt: Timestamp
    /// The container and environment of the entry.
    package let container: ContainerKey
    /// The content of the entry.
    package let body: LogEntryBody
    /// Whether the entry before it was appended by the same request.
    package let continuesRequest: Bool

    package init(
        position: LogPosition, appendedAt: Timestamp, container: ContainerKey, body: LogEntryBody,
        continuesRequest: Bool = false
    ) {
        self.position = position
        self.appendedAt = appendedAt
        self.container = container
        self.body = body
        self.continuesRequest = continuesRequest
    }
}

/// The content of a log entry.
package enum LogEntryBody: Sendable, Hashable {
    /// A record changed.
    case change(RecordChange, source: SourceName, isStale: Bool)
    /// A subscription was saved, and judges changes from the next entry on.
    ///
    /// `replaced` is the serial of the version that ends here, if this is an update.
    case subscriptionSaved(SubscriptionVersion, replaced: UInt64?)
    /// A subscription was deleted.
    ///
    /// The version with this serial ends here.
    case subscriptionDeleted(serial: UInt64)
    /// A device was registered.
    ///
    /// `replaced` lists the serials of the versions that end here: an earlier token of the device,
    /// or another owner's registration of the token.
    case deviceSaved(DeviceVersion, replaced: [UInt64])
    /// Devices were signed out or forgotten.
    ///
    /// The versions with these serials end here.
    case devicesEnded(serials: [UInt64])
}
