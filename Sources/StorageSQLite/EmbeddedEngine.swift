import CSQLite
import FoundationEssentials
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// A store's SQLite file: one writer with a thread of its own, and a pool of readers.
final class EmbeddedEngine: StoreEngine {
    let place: String
    let pool: EmbeddedPool
    /// The lock of the file; continuous backup signs it and reads through it.
    let lock: StoreLock
    /// Receives the committed frames; `nil` without continuous backup.
    let spool: LogSpool?
    private let disk: DiskReserve
    private let inbox: WriteInbox
    private let writer: GroupWriter
    private let ending: WriterEnding

    /// Opens a file whose schema is up to date, and returns the engine and what the file contains.
    static func open(
        _ connections: StoreConnections, _ lock: StoreLock
    ) throws -> (EmbeddedEngine, OpenedStore) {
        let pool = try connections.openPool()
        let opening: StoreOpening
        do {
            let witness = try StoreWitness(of: connections.path)
            opening = try pool.write { try StoreOpening($0, witness, lock) }
        } catch {
            // After any failure the log stays as it is, and the next start reads it.
            _ = close(pool, folding: false, after: nil)
            throw error
        }
        connections.spool?.goOn(of: opening.identity.description) { lock.sign($0) }
        let opened = OpenedStore(
            identity: opening.identity, epoch: opening.epoch,
            horizon: LogHorizon(head: opening.head, settings: connections.settings),
            endedDevices: EndedDevices(opening.endedDevices))
        let engine = EmbeddedEngine(connections, pool, opened, opening.ledger, lock)
        return (engine, opened)
    }

    private init(
        _ connections: StoreConnections, _ pool: EmbeddedPool, _ opened: OpenedStore,
        _ ledger: CommitLedger, _ lock: StoreLock
    ) {
        place = connections.path
        spool = connections.spool
        self.lock = lock
        self.pool = pool
        let settings = connections.settings
        let horizon = opened.horizon
        disk = DiskReserve(path: place, reserve: settings.diskReserveBytes)
        inbox = WriteInbox(settings: settings)
        ending = WriterEnding()
        writer = GroupWriter(
            pool: pool, inbox: inbox, horizon: horizon, ledger: ledger,
            endedDevices: opened.endedDevices, settings: settings, spool: spool)
        writer.start { [ending, spool, path = place] in
            let earlier = horizon.closed
            horizon.close(.closed("the store is closed"))
            var failure = earlier
            if earlier == nil {
                failure = Self.close(pool, folding: true, after: spool)
                if failure == nil { failure = Self.noteEnd(in: ledger, head: horizon.head, path) }
                if failure == nil { spool?.close() }
            } else {
                _ = Self.close(pool, folding: false, after: nil)
            }
            lock.release()
            ending.finish(failure)
        }
    }

    /// Closes the file.
    ///
    /// With `folding` it checkpoints the write-ahead log first, so that the file alone holds
    /// everything. Without it nothing more is written, because the state of the disk is unknown.
    ///
    /// - Returns: Why the checkpoint failed, if the state of the disk is unknown now.
    private static func close(
        _ pool: EmbeddedPool, folding: Bool, after spool: LogSpool?
    ) -> StorageError? {
        var failure: StorageError?
        if folding {
            // The last connection that closes removes the log, and a reader may not do so.
            pool.forgetReaders()
            pool.write { db in
                do {
                    try StoreConnections.fold(db, after: spool)
                } catch {
                    let reason = StorageError.translate(error, path: pool.path)
                    failure = .closed("the last checkpoint failed: \(reason)")
                }
            }
        }
        pool.close()
        return failure
    }

    private static func noteEnd(
        in ledger: CommitLedger, head: LogPosition, _ path: String
    ) -> StorageError? {
        do {
            // A reader of another process may have kept the log.
            try ledger.noteEnd(
                head: head, isLogKept: LogTrimmer.size(of: path + "-wal") != 0)
            return nil
        } catch {
            return error as? StorageError ?? .closed("\(error)")
        }
    }

    func end() {
        inbox.end(.closed("the store is closed"))
    }

    func close() async -> StorageError? {
        end()
        return await ending.wait()
    }

    func submit(_ requests: [WriteRequest]) -> StorageError? {
        inbox.submit(requests)
    }

    func isContended(by container: ContainerKey) -> Bool { inbox.isContended(by: container) }

    func translated(_ error: any Error) -> any Error {
        StorageError.translate(error, path: place)
    }

    /// Runs `body` on a reader.
    ///
    /// If a reader finds damage, or a page that the disk cannot read, all writing ends, as it does
    /// if the writer finds it.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (StorageSQL.Database) throws -> Value
    ) async throws -> Value {
        do {
            return try await pool.read { try body($0.database) }
        } catch {
            if let failure = error as? EmbeddedError, failure.isDamage {
                writer.giveUp(.closed("damage was found: \(translated(error))"))
            } else if let failure = error as? EmbeddedError, failure.isFailedRead {
                writer.giveUp(.closed("a page could not be read: \(translated(error))"))
            }
            throw translated(error)
        }
    }

    var commitCount: UInt64 { writer.commitCount }

    var footprint: StoreFootprint {
        var footprint = StoreFootprint(
            fileBytes: LogTrimmer.size(of: place), walBytes: LogTrimmer.size(of: place + "-wal"),
            freeBytes: disk.freeBytes)
        footprint.freeFiles = disk.freeFiles
        return footprint
    }

    func checkRoom() throws(StorageError) {
        try disk.check()
    }

    var shortage: String? { disk.shortage }

    func optimize(_ db: StorageSQL.Database) throws {
        try db.execute(sql: "PRAGMA optimize")
    }
}

/// The state of a store when its file is opened.
private struct StoreOpening {
    let identity: UUIDBytes
    let head: LogPosition
    let epoch: Int64
    /// The devices whose end neither the progress nor every range has reached yet.
    let endedDevices: [UInt64]

    let ledger: CommitLedger

    /// Reads the state, begins a new epoch and notes the beginning in the witness.
    ///
    /// The witness is written before the file says that it has one. It is written again after the
    /// first commit, so that it knows the salt of the log.
    init(_ db: EmbeddedConnection, _ witness: StoreWitness, _ lock: StoreLock) throws {
        let row = try Row.fetchOne(
            db.database,
            sql: """
                SELECT store.identity, shardHead.position, progress.epoch,
                    (SELECT max(position) FROM logEntry) AS lastEntry, shardHead.commits
                FROM store, shardHead, progress
                """)
        guard let row, let identity = UUIDBytes(bytes: row[0] as Data) else {
            throw StorageError.damaged(path: "store", reason: "the store has no identity")
        }
        let lastEntry = row[3] as Int64?
        guard lastEntry ?? 0 <= row[1] as Int64 else {
            throw StorageError.damaged(
                path: "shardHead", reason: "the log has entries after its head")
        }
        self.identity = identity
        head = LogPosition(stored: row[1])
        epoch = row[2] + 1
        ledger = CommitLedger(
            witness, lock: lock, identity: identity, commits: row[4],
            isSealed: belfry_sqlite_is_sealed(db.pointer) == 1)
        guard lock.isInPlace else {
            throw StorageError.inaccessible(
                path: lock.path,
                reason: "the file was moved, removed or linked while it was opened")
        }
        try ledger.noteBeginning(head: head)
        StoreBackup.sync(URL(filePath: lock.path).deletingLastPathComponent().path)
        try db.inTransaction(.immediate) {
            try db.execute(
                sql: """
                    UPDATE progress SET epoch = epoch + 1 WHERE shard = 0;
                    UPDATE store SET isWitnessed = 1;
                    """)
        }
        try ledger.noteBeginning(head: head)
        endedDevices = try UInt64.fetchAll(
            db.database,
            sql: """
                SELECT serial FROM device
                WHERE ended > min((SELECT position FROM progress WHERE shard = 0),
                    coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
                ORDER BY ended DESC LIMIT ?
                """, arguments: [Int64.max, EndedDevices.limit]
        ).reversed()
    }
}

/// Lets callers wait for the end of the writer.
private final class WriterEnding: Sendable {
    private struct State {
        var isFinished = false
        var failure: StorageError?
        var waiters: [CheckedContinuation<StorageError?, Never>] = []
    }

    private let state = Mutex(State())

    func finish(_ failure: StorageError?) {
        let waiters = state.withLock { state in
            state.isFinished = true
            state.failure = failure
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: failure) }
    }

    /// Waits for the end; returns the reason if the writer did not end in order.
    func wait() async -> StorageError? {
        await withCheckedContinuation { continuation in
            let (isFinished, failure) = state.withLock { state in
                if !state.isFinished { state.waiters.append(continuation) }
                return (state.isFinished, state.failure)
            }
            if isFinished { continuation.resume(returning: failure) }
        }
    }
}
