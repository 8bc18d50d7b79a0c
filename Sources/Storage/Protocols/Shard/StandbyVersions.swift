package import RelayModel

/// What a state that was loaded by one process needs so that another time, or another owner, may
/// go on with it: where it stands in the log, and what has ended since.
///
/// Who does not own the shard may ask this too. Every answer is of one moment, whatever the owner
/// writes meanwhile.
package protocol StandbyVersions: ActiveVersions {
    /// Where the progress stands.
    func settledPlace() async throws -> LogPlace

    /// The subscriptions and devices that ended after `place` and up to `end`, if all of them are
    /// known still, and `place` is one of this log.
    func endings(since place: LogPlace, upTo end: LogPosition) async throws -> EndingsSince
}

/// A position of a log, told from the same position of another log: of another store, or of one
/// that had lost its end, and has grown again.
package struct LogPlace: Sendable, Hashable {
    /// The identity of the store.
    package var store: UUIDBytes
    /// What the server calls its own history, which is another one once a copy of it goes on.
    ///
    /// Empty where there are no copies.
    package var timeline: String
    package var position: LogPosition
    /// When the entry at the position was appended; `nil` if the log does not have it any more.
    package var appendedAt: Timestamp?

    package init(
        store: UUIDBytes, timeline: String, position: LogPosition, appendedAt: Timestamp?
    ) {
        self.store = store
        self.timeline = timeline
        self.position = position
        self.appendedAt = appendedAt
    }

    /// Says why a state as of here cannot be brought up to date on a log.
    ///
    /// - Parameters:
    ///   - there: The same position as that log has it.
    ///   - settled: How far that log is settled.
    /// - Returns: `nil` if it can be.
    package func fault(on there: LogPlace, settled: LogPosition) -> StateFault? {
        guard store == there.store else { return .otherStore }
        // What was settled is settled for ever, in one history.
        guard position <= settled else { return .otherHistory }
        guard let appendedAt, let theirs = there.appendedAt else {
            // Without the entry there is nothing to compare: only a server that is the same still
            // has the same before it.
            return timeline == there.timeline ? nil : .otherHistory
        }
        return appendedAt == theirs ? nil : .otherHistory
    }
}

/// Why a state cannot be brought up to date, and is loaded anew.
package enum StateFault: String, Sendable, Hashable {
    case otherStore = "it is the state of another store"
    case otherHistory = "the log is another one than it was"
    case pruned = "what has ended since is not known any more"
}

/// What has ended since a place.
package enum EndingsSince: Sendable, Hashable {
    /// All that has ended.
    case all([VersionEnding])
    /// That cannot be said.
    case unknown(StateFault)
}
