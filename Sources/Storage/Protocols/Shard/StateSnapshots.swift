package import RelayModel

/// Which snapshot of the follower's state belongs to the store, and which versions have ended
/// since.
///
/// A snapshot is a file beside the store. It is valid only while the store vouches for it, so a
/// copied, restored or leftover file is detected, and one commit switches from one snapshot to the
/// next.
package protocol StateSnapshots: Sendable {
    /// Returns the snapshot that the store vouches for.
    func recordedSnapshot() async throws -> SnapshotRecord?

    /// Vouches for a snapshot in place of the previous one, unless versions that ended after its
    /// position are already deleted, because then it could not be brought up to date.
    ///
    /// Versions that end after its position are kept until another snapshot is recorded.
    func record(_ snapshot: SnapshotRecord) async throws -> SnapshotRecording

    /// Withdraws the record, so that no snapshot is valid.
    func forgetSnapshot() async throws

    /// Returns the subscriptions and devices that ended after `start` and up to `end`.
    func endings(after start: LogPosition, upTo end: LogPosition) async throws -> [VersionEnding]
}

/// A snapshot that the store vouches for.
package struct SnapshotRecord: Sendable, Hashable {
    /// The identity that the file must have.
    package var identity: UUIDBytes
    /// The log position whose state the snapshot holds.
    package var position: LogPosition
    /// When the snapshot was made.
    package var savedAt: Timestamp

    /// Creates a record of a snapshot.
    package init(identity: UUIDBytes, position: LogPosition, savedAt: Timestamp) {
        self.identity = identity
        self.position = position
        self.savedAt = savedAt
    }
}

/// The result of recording a snapshot.
package enum SnapshotRecording: Sendable, Hashable {
    /// The snapshot is valid from now on.
    case recorded
    /// The snapshot is older than a position up to which ended versions are pruned, and cannot
    /// become valid.
    case outdated(prunedTo: LogPosition)
}

/// A subscription or device that is no longer active.
package struct VersionEnding: Sendable, Hashable {
    /// The kind of version.
    package enum Kind: Sendable, Hashable {
        case subscription, device
    }

    /// The kind of version that ended.
    package var kind: Kind
    /// The serial of the version.
    package var serial: UInt64
    /// The container of the version.
    package var container: ContainerKey

    package init(_ kind: Kind, serial: UInt64, of container: ContainerKey) {
        self.kind = kind
        self.serial = serial
        self.container = container
    }
}
