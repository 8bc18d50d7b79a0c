package import RelayModel

/// Where changes come in: whoever has verified and read a change hands it over here.
///
/// Every engine honours the contract that `ShardLogConformance` checks. Whatever process is asked,
/// the change is in the log of its container's shard when this returns.
package protocol IntakeLog: Sendable {
    /// Appends the changes of one request and returns what became of each, in order.
    ///
    /// Where they make more than 16 MiB, with what is kept of their records, or write more rows
    /// than one transaction of the engine may, these are the first of them alone, and one at least:
    /// the others are to be appended next.
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

    /// Looks at some of a container's records after `place`, and deletes those that a snapshot did
    /// not contain, each as a change that fires.
    ///
    /// A part reads some thousand records and deletes some tens of them. A sweep that is begun anew
    /// after a crash finds the rest. A record that changed since has a version that is not lower,
    /// and stays.
    ///
    /// - Throws: ``StorageError`` if nothing was deleted: no room, or the log is closed.
    func sweepPart(
        _ sweep: SnapshotSweep, after place: SweepPlace?, at now: Timestamp
    ) async throws -> SweptPart
}

extension IntakeLog {
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
    package var change: RecordChange { didSet { text = nil } }
    /// Its identity at the source; `nil` if the source has none, and then it is never a duplicate.
    package var key: DedupeKey?
    /// What the log keeps of the change, if it was written ahead.
    package private(set) var text: String?

    package init(_ change: RecordChange, key: DedupeKey?) {
        self.change = change
        self.key = key
    }

    /// Writes ahead what the log keeps of the change, which appending does otherwise.
    ///
    /// - Throws: `JSONContractError` if the log could not read the change again.
    package mutating func writeText() throws(JSONContractError) {
        text = try change.storedText()
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
