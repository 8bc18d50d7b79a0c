package import RelayModel

/// The search for kept records that a completed snapshot of their source did not contain.
///
/// The snapshot gave its version to each record that it contained. A record of the same source with
/// a lower version was deleted in the source earlier, and the source did not report it.
package struct SnapshotSweep: Sendable, Hashable {
    /// The container and environment.
    package let container: ContainerKey
    /// The source that made the snapshot.
    ///
    /// Records last written by another source are not affected.
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

/// The place at which a sweep continues: the key, within its container, of the last record that was
/// looked at.
package struct SweepPlace: Sendable, Hashable {
    /// The parts of the key: database, owner, both names of the zone, type and name.
    package let key: [String]

    package init(key: [String]) {
        self.key = key
    }
}

/// The result of a part of a sweep.
package struct SweptPart: Sendable, Hashable {
    /// The place at which the next part begins; `nil` if there are no more records.
    package let next: SweepPlace?
    /// The number of deleted records.
    package let deleted: Int
    /// The position of the last deletion.
    package let last: LogPosition?

    package init(next: SweepPlace?, deleted: Int, last: LogPosition?) {
        self.next = next
        self.deleted = deleted
        self.last = last
    }
}
