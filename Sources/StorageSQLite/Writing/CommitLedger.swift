import FoundationEssentials
import RelayModel
import Storage
import Synchronization

/// Counts the commits that are acknowledged, in the file and beside it.
///
/// It belongs to the writer's thread, which also looks now and then whether the file is in its
/// place.
final class CommitLedger: Sendable {
    private static let commitsBetweenLooks: UInt64 = 32
    /// The most that a power cut can take from what the witness knows, while there are commits.
    private static let syncInterval = Duration.seconds(5)

    private let witness: StoreWitness
    private let lock: StoreLock
    private let identity: UUIDBytes
    private let isSealed: Bool
    private let counted: Atomic<Int64>
    private let noted = Atomic<UInt64>(0)
    private let syncedAt = Mutex(ContinuousClock.now)

    /// Begins with the commits that the file counts.
    init(
        _ witness: StoreWitness, lock: StoreLock, identity: UUIDBytes, commits: Int64,
        isSealed: Bool
    ) {
        self.witness = witness
        self.lock = lock
        self.identity = identity
        self.isSealed = isSealed
        counted = Atomic(commits)
    }

    /// The number of the next commit.
    var next: Int64 { counted.load(ordering: .relaxed) + 1 }

    /// Notes a commit that is durable, before anybody is told.
    ///
    /// - Throws: ``StorageError/closed(_:)`` if that cannot be done, or the file is not in its
    ///   place any more.
    func note(_ commits: Int64, head: LogPosition) throws {
        counted.store(commits, ordering: .relaxed)
        try write(head: head, salt: witness.salt())
        let count = noted.wrappingAdd(1, ordering: .relaxed).newValue
        guard !count.isMultiple(of: Self.commitsBetweenLooks) || lock.isInPlace else {
            throw StorageError.closed("the file was moved, removed, exchanged or linked")
        }
        let isDue = syncedAt.withLock { syncedAt in
            let now = ContinuousClock.now
            guard Self.syncInterval <= syncedAt.duration(to: now) else { return false }
            syncedAt = now
            return true
        }
        if isDue { try sync() }
    }

    /// Notes how far the store is at its end, durably: everything is in the file, or a reader kept
    /// the log.
    func noteEnd(head: LogPosition, isLogKept: Bool) throws {
        try write(head: head, salt: isLogKept ? witness.salt() : 0)
        try sync()
    }

    /// Notes how far the store is at a start, durably.
    ///
    /// The file says then that it has a witness: so this one must be there.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if there is none.
    func noteBeginning(head: LogPosition) throws(StorageError) {
        try witness.noteAtStart(record(head: head, salt: witness.salt()))
    }

    private func record(head: LogPosition, salt: UInt32) -> WitnessRecord {
        WitnessRecord(
            identity: identity, commits: counted.load(ordering: .relaxed), head: head, salt: salt,
            isSealed: isSealed)
    }

    private func write(head: LogPosition, salt: UInt32) throws {
        try Self.leavingBehind { () throws(WitnessFailure) in
            try witness.note(record(head: head, salt: salt))
        }
    }

    private func sync() throws {
        try Self.leavingBehind { () throws(WitnessFailure) in try witness.sync() }
    }

    /// Has the witness note or sync something; where there is no room for it, which some file
    /// systems say only at the sync, it stays behind: it knows less then, and never more than there
    /// is.
    static func leavingBehind(_ body: () throws(WitnessFailure) -> Void) throws {
        do throws(WitnessFailure) {
            try body()
        } catch {
            if !error.isNoRoom { throw StorageError.closed("\(error)") }
        }
    }
}
