import FoundationEssentials
import RelayModel
import Storage
import Synchronization

/// Counts the acknowledged commits, for the file and in the witness.
///
/// The writer's thread uses it. It also checks now and then that the file is still in its place,
/// and puts the witness back into its own.
final class CommitLedger: Sendable {
    private static let commitsBetweenLooks: UInt64 = 32
    /// How far the witness may lag behind after a power cut, while there are commits.
    private static let syncInterval = Duration.seconds(5)

    private let witness: StoreWitness
    private let lock: StoreLock
    private let identity: UUIDBytes
    private let isSealed: Bool
    private let counted: Atomic<Int64>
    private let noted = Atomic<UInt64>(0)
    private let syncedAt = Mutex(ContinuousClock.now)

    /// Creates a ledger that begins with the number of commits in the file.
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

    /// Records a durable commit in the witness, before the callers are answered.
    ///
    /// - Throws: ``StorageError/closed(_:)`` if it cannot be recorded, or the file is no longer in
    ///   its place.
    func note(_ commits: Int64, head: LogPosition) throws {
        counted.store(commits, ordering: .relaxed)
        try write(head: head, salt: witness.salt())
        let count = noted.wrappingAdd(1, ordering: .relaxed).newValue
        if count.isMultiple(of: Self.commitsBetweenLooks) {
            guard lock.isInPlace else {
                throw StorageError.closed("the file was moved, removed, exchanged or linked")
            }
            try putBackWitness(head: head, salt: witness.salt())
        }
        let isDue = syncedAt.withLock { syncedAt in
            let now = ContinuousClock.now
            guard Self.syncInterval <= syncedAt.duration(to: now) else { return false }
            syncedAt = now
            return true
        }
        if isDue { try sync() }
    }

    /// Durably records the state of the store at its end.
    ///
    /// Then everything is in the file, unless a reader kept the log.
    func noteEnd(head: LogPosition, isLogKept: Bool) throws {
        let salt = isLogKept ? witness.salt() : 0
        try putBackWitness(head: head, salt: salt)
        try write(head: head, salt: salt, isEnded: !isLogKept)
        try sync()
    }

    /// Durably records the state of the store at a start.
    ///
    /// It comes before the file says that it has a witness, because a file that says so is refused
    /// without one.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if the disk is full.
    func noteBeginning(head: LogPosition) throws(StorageError) {
        try witness.noteAtStart(record(head: head, salt: witness.salt()))
    }

    private func record(head: LogPosition, salt: UInt32) -> WitnessRecord {
        WitnessRecord(
            identity: identity, commits: counted.load(ordering: .relaxed), head: head, salt: salt,
            isSealed: isSealed)
    }

    private func putBackWitness(head: LogPosition, salt: UInt32) throws {
        try Self.leavingBehind { () throws(WitnessFailure) in
            try witness.putBack(record(head: head, salt: salt))
        }
    }

    private func write(head: LogPosition, salt: UInt32, isEnded: Bool = false) throws {
        var known = record(head: head, salt: salt)
        known.isEnded = isEnded
        try Self.leavingBehind { [known] () throws(WitnessFailure) in try witness.note(known) }
    }

    private func sync() throws {
        try Self.leavingBehind { () throws(WitnessFailure) in try witness.sync() }
    }

    /// Runs a write or sync of the witness, and ignores a full disk.
    ///
    /// Some file systems report a full disk only at the sync. The witness then lags behind, but
    /// never claims more than is on the disk.
    static func leavingBehind(_ body: () throws(WitnessFailure) -> Void) throws {
        do throws(WitnessFailure) {
            try body()
        } catch {
            if !error.isNoRoom { throw StorageError.closed("\(error)") }
        }
    }
}
