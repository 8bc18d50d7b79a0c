package import RelayModel

/// Where verified and decoded changes come into the log.
///
/// Every engine honours the contract that `ShardLogConformance` checks. Whichever process is
/// called, the change is in the log of its container's shard when the call returns.
package protocol IntakeLog: Sendable {
    /// Appends the changes of one request and returns the outcome of each, in order.
    ///
    /// If the changes, with the kept images of their records, exceed 16 MiB, or write more rows
    /// than one transaction of the engine may, only the first of them are appended, and at least
    /// one. The caller must then append the rest.
    ///
    /// Everything that is appended is durable when this returns. A change with a known key is not
    /// appended again: with the same digest the answer is the first position, with another digest a
    /// conflict. A change older than the last applied version of its record is appended as stale.
    ///
    /// `delivery` is the key of the request as a whole, if it has one besides the keys of its
    /// changes. If it is known with another digest, every change is a conflict and nothing is
    /// appended.
    ///
    /// - Throws: ``StorageError`` if nothing was appended, because there is no space or the log is
    ///   closed.
    func append(
        _ changes: [ChangeToAppend], delivery: DedupeKey?, container: ContainerKey,
        source: SourceName, at now: Timestamp
    ) async throws -> [AppendOutcome]

    /// Looks at some of a container's records after `place`, and deletes those that a snapshot did
    /// not contain, each as a change that fires.
    ///
    /// One part reads some thousand records and deletes some tens of them. A sweep that is
    /// restarted after a crash finds the rest. A record that changed since the snapshot has a
    /// version that is not lower, and stays.
    ///
    /// - Throws: ``StorageError`` if nothing was deleted, because there is no space or the log is
    ///   closed.
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

/// A change to append to the log.
package struct ChangeToAppend: Sendable, Hashable {
    /// The change.
    package var change: RecordChange { didSet { text = nil } }
    /// The dedupe key; `nil` if the source sends nothing that can serve as one, so that the change
    /// is never a duplicate.
    package var key: DedupeKey?
    /// The text of the change for the log, if it was prepared.
    package private(set) var text: String?

    package init(_ change: RecordChange, key: DedupeKey?) {
        self.change = change
        self.key = key
    }

    /// Prepares the text of the change for the log.
    ///
    /// Otherwise, appending does this.
    ///
    /// - Throws: `JSONContractError` if the log could not read the change back.
    package mutating func writeText() throws(JSONContractError) {
        text = try change.storedText()
    }
}

/// The outcome of appending one change.
package enum AppendOutcome: Sendable, Hashable {
    /// The change was appended at this position.
    case appended(LogPosition)
    /// The change was appended at this position, but is older than what was applied to its record
    /// before, and fires nothing.
    case appendedAsStale(LogPosition)
    /// The change was appended at this position by an earlier request.
    case duplicate(LogPosition)
    /// Another change with the same key is at this position.
    ///
    /// Nothing was appended.
    case conflict(LogPosition)
}
