package import RelayModel

/// One sequenced, gap-free log of changes and of edits of subscriptions and devices.
///
/// The log is the truth: what a change fires follows from the entries before it and from nothing
/// else. Every implementation honours the contract that `ShardLogConformance` checks.
package protocol ShardLog: Sendable {
    /// The entries after `position` in order, at most `limit`; empty at the head.
    ///
    /// - Throws: ``StorageError/unreadable(_:)`` if the next entry cannot be read.
    func entries(after position: LogPosition, limit: Int) async throws -> [LogEntry]

    /// The same entries for the follower, who need not have every change read.
    func followedEntries(after position: LogPosition, limit: Int) async throws -> [FollowedEntry]

    /// Sets a change aside that cannot be read, with the reason, durably.
    func quarantine(_ entry: UnreadableEntry, at now: Timestamp) async throws

    /// Sets a change aside whose conditions took too many steps, once, and notes it of the
    /// subscriptions named; those for which it happened too often end by an entry of the log.
    ///
    /// - Returns: The serials of those that ended.
    func setAside(_ entry: DearEntry, at now: Timestamp) async throws -> [UInt64]

    /// Where changes were set aside after `position`: they fire nothing, whatever they would.
    func positionsSetAside(after position: LogPosition) async throws -> Set<LogPosition>

    /// The position of the last entry, ``RelayModel/LogPosition/start`` if there is none.
    func head() async throws -> LogPosition

    /// Returns as soon as the head is beyond `position`; throws `CancellationError` if cancelled.
    func waitForGrowth(beyond position: LogPosition) async throws
}

extension ShardLog {
    /// A log that knows no subscriptions sets the change aside, and names nobody.
    package func setAside(_ entry: DearEntry, at now: Timestamp) async throws -> [UInt64] {
        try await quarantine(
            UnreadableEntry(position: entry.position, isChange: true, reason: entry.reason),
            at: now)
        return []
    }

    /// Nothing was set aside.
    package func positionsSetAside(
        after position: LogPosition
    ) async throws -> Set<LogPosition> {
        []
    }
}

/// One entry of the log.
package struct LogEntry: Sendable, Hashable {
    /// Its place.
    package let position: LogPosition
    /// When it was appended.
    package let appendedAt: Timestamp
    /// The container and environment it belongs to.
    package let container: ContainerKey
    /// What it says.
    package let body: LogEntryBody
    /// Whether the request that appended the entry before it appended it too.
    package let continuesRequest: Bool

    /// Creates an entry as it was read.
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

/// What a log entry says.
package enum LogEntryBody: Sendable, Hashable {
    /// A record changed.
    case change(RecordChange, source: SourceName, isStale: Bool)
    /// A subscription was saved; it is judged from the next entry on. `replaced` is the version
    /// that ends here, if it was an update.
    case subscriptionSaved(SubscriptionVersion, replaced: UInt64?)
    /// A subscription was deleted; the version with this serial ends here.
    case subscriptionDeleted(serial: UInt64)
    /// A device was registered; `replaced` lists the versions that end here: an earlier token of
    /// the device, or another owner of the token.
    case deviceSaved(DeviceVersion, replaced: [UInt64])
    /// Devices were signed out or forgotten; the versions with these serials end here.
    case devicesEnded(serials: [UInt64])
}
