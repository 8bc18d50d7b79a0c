package import RelayModel

/// The search for kept records that a completed snapshot of their source did not contain.
///
/// The snapshot gave its version to each record that it contained. So a record of the same source
/// with a lower one was deleted in the source before, and nothing told of it.
package struct SnapshotSweep: Sendable, Hashable {
    /// The container and environment.
    package let container: ContainerKey
    /// The source that made the snapshot; what another one wrote last is not its own.
    package let source: SourceName
    /// The record types of the tables that were read.
    package let types: Set<RecordType>
    /// The version of all records of the snapshot.
    package let version: Int64

    package init(
        container: ContainerKey, source: SourceName, types: Set<RecordType>, version: Int64
    ) {
        self.container = container
        self.source = source
        self.types = types
        self.version = version
    }
}

/// Where a sweep goes on: the key of the record that was looked at last, within its container.
package struct SweepPlace: Sendable, Hashable {
    /// Database, owner, both names of the zone, type and name.
    package let key: [String]

    package init(key: [String]) {
        self.key = key
    }
}

/// What a part of a sweep came to.
package struct SweptPart: Sendable, Hashable {
    /// Where the next part begins; `nil` if there are no more records.
    package let next: SweepPlace?
    /// How many records were deleted.
    package let deleted: Int
    /// The position of the last deletion.
    package let last: LogPosition?

    package init(next: SweepPlace?, deleted: Int, last: LogPosition?) {
        self.next = next
        self.deleted = deleted
        self.last = last
    }
}
