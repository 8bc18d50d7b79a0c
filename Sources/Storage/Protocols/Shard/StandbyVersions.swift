package import RelayModel

/// What a process needs to bring a state up to date that was loaded earlier or by another process:
/// where it stands in the log, and what has ended since.
///
/// A process that does not own the shard may ask this too. Every answer describes one moment,
/// whatever the owner writes meanwhile.
package protocol StandbyVersions: ActiveVersions {
    /// Returns the place of the progress.
    func settledPlace() async throws -> LogPlace

    /// Returns the subscriptions and devices that ended after `place` and up to `end`, if all of
    /// them are still known and `place` belongs to this log.
    func endings(since place: LogPlace, upTo end: LogPosition) async throws -> EndingsSince
}

/// A position of a log, distinguishable from the same position of another log: of another store, or
/// of a log that lost its end and has grown again.
package struct LogPlace: Sendable, Hashable {
    /// The identity of the store.
    package var store: UUIDBytes
    /// The server's timeline, which changes when a copy of the server continues on its own.
    ///
    /// Empty for an engine without copies.
    package var timeline: String
    package var position: LogPosition
    /// When the entry at the position was appended; `nil` if the log no longer has it.
    package var appendedAt: Timestamp?

    package init(
        store: UUIDBytes, timeline: String, position: LogPosition, appendedAt: Timestamp?
    ) {
        self.store = store
        self.timeline = timeline
        self.position = position
        self.appendedAt = appendedAt
    }

    /// Returns why a state as of this place cannot be brought up to date on a log, or `nil` if it
    /// can.
    ///
    /// - Parameters:
    ///   - there: The same position in that log.
    ///   - settled: How far that log is settled.
    /// - Returns: The reason, or `nil`.
    package func fault(on there: LogPlace, settled: LogPosition) -> StateFault? {
        guard store == there.store else { return .otherStore }
        // Within one history, what was settled stays settled.
        guard position <= settled else { return .otherHistory }
        guard let appendedAt, let theirs = there.appendedAt else {
            // Without the entry there is nothing to compare. Only the same timeline guarantees the
            // same history before this position.
            return timeline == there.timeline ? nil : .otherHistory
        }
        return appendedAt == theirs ? nil : .otherHistory
    }
}

/// The reason why a state cannot be brought up to date and must be loaded anew.
package enum StateFault: String, Sendable, Hashable {
    case otherStore = "it is the state of another store"
    case otherHistory = "the log was replaced by another one"
    case pruned = "what has ended since then is no longer known"
}

/// The versions that have ended since a place.
package enum EndingsSince: Sendable, Hashable {
    /// All versions that have ended.
    case all([VersionEnding])
    /// The ended versions are not known.
    case unknown(StateFault)
}
