import Logging
import Matching
import RelayModel
import Storage

// Entries that cannot be read, or take too many steps, are set aside, and the log goes on.
extension Follower {
    /// Reads the next entries.
    ///
    /// Returns `nil` if the next one could not be read and was passed over.
    ///
    /// A change that cannot be read is set aside, because one damaged record must not stop the
    /// notifications of all others. If an edit cannot be read, the state is loaded again from the
    /// registry as of its position, because the registry contains what the edit says.
    mutating func readableEntries(
        after position: inout LogPosition
    ) async throws -> [FollowedEntry]? {
        do {
            let last = position
            return try await patience.attempt { [log] in
                try await log.followedEntries(after: last, limit: Self.entriesPerRead)
            }
        } catch StorageError.unreadable(let entry) {
            if entry.isChange {
                try await setAside(entry)
            } else {
                warn(of: entry)
                try await makeUpAll()
                try await reload(at: entry.position)
            }
            position = entry.position
            worked = position
            try await handOver(finished: position)
            return nil
        }
    }

    func setAside(_ entry: UnreadableEntry) async throws {
        warn(of: entry)
        try await patience.attempt { [log, now] in try await log.quarantine(entry, at: now()) }
        meter.countQuarantined()
    }

    /// Sets aside a change that takes too many steps and would keep all others waiting.
    ///
    /// The log message and the entry name the subscriptions whose conditions take most steps.
    mutating func setAside(_ dear: DearChange, _ entry: FollowedEntry) async throws {
        let blamed = dear.blamed { state.subscription($0, of: entry.container)?.owner }
        let named = blamed.map { "\($0)" }.joined(separator: ", ")
        logger.critical(
            "set a change aside: evaluating its conditions takes too many steps",
            metadata: [
                "position": "\(entry.position)", "container": "\(entry.container)",
                "steps": .stringConvertible(dear.steps), "subscriptions": "\(named)",
            ])
        let aside = DearEntry(
            position: entry.position, container: entry.container, dearest: blamed,
            reason: "its conditions take more than \(dear.steps) steps; most take those of the "
                + "subscriptions with the serials \(named)")
        let ended = try await patience.attempt { [log, now] in
            try await log.setAside(aside, at: now())
        }
        meter.countQuarantined()
        guard !ended.isEmpty else { return }
        meter.countDisabled(ended.count)
        logger.error(
            "disabled subscriptions whose conditions caused several changes to be set aside",
            metadata: [
                "container": "\(entry.container)",
                "subscriptions": "\(ended.map { "\($0)" }.joined(separator: ", "))",
            ])
    }

    private func warn(of entry: UnreadableEntry) {
        logger.critical(
            "cannot read an entry of the log",
            metadata: ["position": "\(entry.position)", "reason": "\(entry.reason)"])
    }
}
