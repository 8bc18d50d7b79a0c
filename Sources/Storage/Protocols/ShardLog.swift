package import RelayModel

/// One sequenced, gap-free log of changes and of edits of subscriptions and devices.
///
/// The log is the truth: what a change fires follows from the entries before it and from nothing
/// else. Every implementation honours the contract that `ShardLogConformance` checks.
package protocol ShardLog: Sendable {
    /// Appends the changes of one request and returns what became of each, in order.
    ///
    /// Everything that is appended is durable when this returns. A change whose key is known is not
    /// appended again: the same digest answers with the first position, another one is a conflict.
    /// A change older than the last applied version of its record is appended as stale.
    ///
    /// `delivery` is the key of the request as a whole, if it has one beside those of its changes:
    /// where it is known with another digest, every change is a conflict and nothing is appended.
    ///
    /// - Throws: ``StorageError`` if nothing was appended: no room, or the log is closed.
    func append(
        _ changes: [ChangeToAppend], delivery: DedupeKey?, container: ContainerKey,
        source: SourceName, at now: Timestamp
    ) async throws -> [AppendOutcome]

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

    /// Appends changes whose request has no key of its own.
    package func append(
        _ changes: [ChangeToAppend], container: ContainerKey, source: SourceName, at now: Timestamp
    ) async throws -> [AppendOutcome] {
        try await append(changes, delivery: nil, container: container, source: source, at: now)
    }
}

/// A change on its way into the log.
package struct ChangeToAppend: Sendable, Hashable {
    /// The change.
    package var change: RecordChange
    /// Its identity at the source; `nil` if the source has none, and then it is never a duplicate.
    package var key: DedupeKey?

    /// Creates a change on its way into the log.
    package init(_ change: RecordChange, key: DedupeKey?) {
        self.change = change
        self.key = key
    }
}

/// What became of one change that was to be appended.
package enum AppendOutcome: Sendable, Hashable {
    /// It stands at this position now.
    case appended(LogPosition)
    /// It stands at this position now, but is older than what was applied to its record before, and
    /// fires nothing.
    case appendedAsStale(LogPosition)
    /// It stood at this position already.
    case duplicate(LogPosition)
    /// Another change with the same key stands at this position; nothing was appended.
    case conflict(LogPosition)
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

    /// Creates an entry as it was read.
    package init(
        position: LogPosition, appendedAt: Timestamp, container: ContainerKey, body: LogEntryBody
    ) {
        self.position = position
        self.appendedAt = appendedAt
        self.container = container
        self.body = body
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
