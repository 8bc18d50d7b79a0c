package import RelayModel

/// Which snapshot of the follower's state belongs to the store, and what has ended since.
///
/// A snapshot is a file beside the store. It counts only while the store vouches for it: so a file
/// that was copied, restored or left over is found out, and the switch from one snapshot to the
/// next is one commit.
package protocol StateSnapshots: Sendable {
    /// The snapshot that the store vouches for.
    func recordedSnapshot() async throws -> SnapshotRecord?

    /// Vouches for a snapshot instead of the one before, unless versions that ended after its
    /// position are gone already: then it could not be brought up to date.
    ///
    /// Until another one is recorded, versions that end after its position are kept.
    func record(_ snapshot: SnapshotRecord) async throws -> SnapshotRecording

    /// Vouches for none any more.
    func forgetSnapshot() async throws

    /// The subscriptions and devices that ended after `start` and up to `end`.
    func endings(after start: LogPosition, upTo end: LogPosition) async throws -> [VersionEnding]
}

/// A snapshot that the store vouches for.
package struct SnapshotRecord: Sendable, Hashable {
    /// What the file has to be.
    package var identity: UUIDBytes
    /// The position of the log of which it is the state.
    package var position: LogPosition
    /// When it was made.
    package var savedAt: Timestamp

    /// Describes a snapshot.
    package init(identity: UUIDBytes, position: LogPosition, savedAt: Timestamp) {
        self.identity = identity
        self.position = position
        self.savedAt = savedAt
    }
}

/// What became of a snapshot that the store was to vouch for.
package enum SnapshotRecording: Sendable, Hashable {
    /// It counts from now on.
    case recorded
    /// It was taken before a position up to which ended versions are pruned, and never counts.
    case outdated(prunedTo: LogPosition)
}

/// A subscription or device that is active no longer.
package struct VersionEnding: Sendable, Hashable {
    /// What has ended.
    package enum Kind: Sendable, Hashable {
        case subscription, device
    }

    /// What has ended.
    package var kind: Kind
    /// Its serial.
    package var serial: UInt64
    /// Its container.
    package var container: ContainerKey

    /// Describes an end.
    package init(_ kind: Kind, serial: UInt64, of container: ContainerKey) {
        self.kind = kind
        self.serial = serial
        self.container = container
    }
}
