import CSQLite
import Foundation
import GRDB
package import Migrations
package import RelayModel
package import Storage
import Synchronization

/// What survives a crash, on an embedded SQLite file: the log, the progress, the registry, and the
/// exceptions.
///
/// There is one writer, which owns a thread, commits what many callers want written together, and
/// does every checkpoint; readers see the last commit and never write. A lock file keeps a second
/// process out. Everything that was acknowledged is on the disk (`synchronous=FULL`).
///
/// - Invariant: Nothing outside this room sees a row, a statement or a connection.
package final class RelayStore: Sendable {
    /// The file.
    package let path: String
    /// Random bytes that no other store has: part of every delivery's identity, so that two relays
    /// never mint the same one.
    package let storeIdentity: UUIDBytes
    /// How the store works.
    package let settings: StoreSettings

    let pool: DatabasePool
    let horizon: LogHorizon
    let disk: DiskReserve
    let ranges = RangeSignal()
    /// Says that what was held back may be judged anew.
    let releases = RangeSignal()
    let inboxes = InboxNews()
    let endedDevices: EndedDevices
    /// How much steps said of subscriptions since the start that was not added up.
    let notAddedUp = Atomic<Int>(0)
    /// Where those wait who read much.
    let line: ReaderLine
    /// What refuses changes before they would be lost; whoever watches the bounds sets it.
    package let gate = IntakeGate()
    /// How often quotas were reached.
    package let quotaTally = QuotaTally()
    /// The rows that were set aside because they cannot be read.
    package let unreadable = UnreadableRows()
    /// What was read of containers: what every request asks for comes from memory.
    let schemas = ContainerMemory<ContainerSchema>()
    let containerSettings = ContainerMemory<ContainerSettings>()
    let keysOfContainers = ContainerMemory<[AccessKey]>()
    let sourcesOfContainers = ContainerMemory<[StoredSource]>()
    /// How often the file has been opened: who settles under an older number has lost the shard.
    let epoch: Int64
    private let inbox: WriteInbox
    private let writer: GroupWriter
    private let ending: WriterEnding

    /// Opens or creates the store at `path`, and brings its schema up to date.
    ///
    /// It blocks: on the check of the file's pages, up to ``StoreSettings/quickCheckBytes``, and on
    /// migrations.
    ///
    /// - Throws: ``StorageError`` if another process has it, the file is damaged or of a newer
    ///   version, or a setting on which a promise rests cannot be had.
    package static func open(
        path: String, settings: StoreSettings = StoreSettings()
    ) throws -> RelayStore {
        try open(path: path, settings: settings, migrations: Migration.released)
    }

    /// Opens the store with a private list of migrations, for tests of the mechanism.
    package static func open(
        path: String, settings: StoreSettings, migrations: [Migration]
    ) throws -> RelayStore {
        let path = try StorePlace.resolve(path)
        // A lock is not left behind where there is nothing to lock.
        let isThere = ["", "-wal", StoreWitness.ending].contains {
            FileManager.default.fileExists(atPath: path + $0)
        }
        guard isThere || settings.creation == .whenMissing else {
            throw StorageError.missing(path: path)
        }
        let lock = try StoreLock(databasePath: path)
        do {
            let connections = StoreConnections(path: path, settings: settings, lock: lock)
            _ = try connections.prepare(StoreSchema(migrations: migrations))
            try connections.sealSecrets(migrations: migrations)
            return try RelayStore(connections, lock: lock)
        } catch {
            lock.release()
            throw StorageError.opening(path, failed: error)
        }
    }

    /// Brings the schema of the file at `path` up to date; returns the names of the steps applied.
    ///
    /// - Throws: ``StorageError`` as ``open(path:settings:)`` does.
    package static func migrate(path: String) throws -> [String] {
        let path = try StorePlace.resolve(path)
        let lock = try StoreLock(databasePath: path)
        defer { lock.release() }
        do {
            var settings = StoreSettings()
            // Whoever asks for it by name has the time to have the file written anew.
            settings.sealedBytes = .max
            return try StoreConnections(path: path, settings: settings, lock: lock)
                .prepare(StoreSchema(migrations: Migration.released))
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }

    /// Takes the pages of the file at `path` for what they should be, and writes their checksums
    /// anew: after another program has changed the file on purpose.
    ///
    /// - Throws: ``StorageError`` if it is in use, or has a write-ahead log.
    package static func reseal(path: String) throws {
        let path = try StorePlace.resolve(path)
        let lock = try StoreLock(databasePath: path)
        defer { lock.release() }
        guard LogTrimmer.size(of: path + "-wal") == 0 else {
            throw StorageError.inaccessible(
                path: path, reason: "it has a write-ahead log: a start folds it into the file")
        }
        let code = lock.reseal()
        guard code == 0 else {
            throw StorageError.inaccessible(
                path: path,
                reason: code == EINVAL
                    ? "its pages have no checksums" : String(cString: strerror(code)))
        }
    }

    /// The version of the schema of the file at `path`, which may be open elsewhere; 0 if empty.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if it is no database of Belfry.
    package static func schemaVersion(of path: String) throws -> Int {
        do {
            return try StoreConnections(path: path, settings: StoreSettings())
                .inspect { try StoreSchema.version($0, path: path) }
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }

    /// The version of the schema that this build writes.
    package static var newestSchemaVersion: Int { StoreSchema.newestVersion }

    /// The ID of the key with which the secrets are encrypted; `nil` if they lie there as they are.
    package var secretsKeyID: String? { settings.secrets.current?.id }

    /// Commits since the store was opened: with ``head()``, how many requests shared one.
    package var commitCount: UInt64 { writer.commitCount }

    private init(_ connections: StoreConnections, lock: StoreLock) throws {
        path = connections.path
        settings = connections.settings
        pool = try connections.openPool()
        let witness: StoreWitness
        let opening: StoreOpening
        do {
            witness = try StoreWitness(of: path)
            opening = try pool.writeWithoutTransaction { try StoreOpening($0, witness, lock) }
        } catch {
            // Whatever failed: the log is left as it is, and the next start takes it.
            _ = Self.close(pool, folding: false)
            throw error
        }
        let ledger = opening.ledger
        storeIdentity = opening.identity
        epoch = opening.epoch
        horizon = LogHorizon(head: opening.head, settings: settings)
        endedDevices = EndedDevices(opening.endedDevices)
        disk = DiskReserve(path: path, reserve: settings.diskReserveBytes)
        line = ReaderLine(turns: settings.scanningReaders)
        inbox = WriteInbox(settings: settings)
        ending = WriterEnding()
        writer = GroupWriter(
            pool: pool, inbox: inbox, horizon: horizon, ledger: ledger,
            endedDevices: endedDevices, settings: settings)
        writer.start { [pool, ending, horizon, path] in
            let earlier = horizon.closed
            horizon.close(.closed("the store is closed"))
            var failure = earlier
            if earlier == nil {
                failure = Self.close(pool, folding: true)
                if failure == nil { failure = Self.noteEnd(in: ledger, head: horizon.head, path) }
            } else {
                _ = Self.close(pool, folding: false)
            }
            lock.release()
            ending.finish(failure)
        }
    }

    /// Closes the file; folds the write-ahead log into it, so that the file alone holds everything,
    /// unless it is unknown what is on the disk: then nothing is written any more.
    ///
    /// - Returns: Why the log could not be folded, if it is unknown what is on the disk now.
    private static func close(_ pool: DatabasePool, folding: Bool) -> StorageError? {
        var failure: StorageError?
        if folding {
            // Who closes last removes the log, and readers may not.
            pool.invalidateReadOnlyConnections()
            pool.writeWithoutTransaction { db in
                do {
                    try StoreConnections.fold(db)
                } catch {
                    let reason = StorageError.translate(error, path: pool.path)
                    failure = .closed("the last checkpoint failed: \(reason)")
                }
            }
        }
        try? pool.close()
        return failure
    }

    private static func noteEnd(
        in ledger: CommitLedger, head: LogPosition, _ path: String
    ) -> StorageError? {
        do {
            // A reader may have kept the log.
            try ledger.noteEnd(
                head: head, isLogKept: LogTrimmer.size(of: path + "-wal") != 0)
            return nil
        } catch {
            return error as? StorageError ?? .closed("\(error)")
        }
    }

    deinit {
        inbox.end(.closed("the store is closed"))
    }

    /// Writes what is waiting, closes the file, and gives the lock back.
    ///
    /// - Returns: Why the end is not an orderly one: writing had failed before, or the last
    ///   checkpoint did. What was acknowledged is on the disk all the same.
    @discardableResult
    package func close() async -> StorageError? {
        inbox.end(.closed("the store is closed"))
        return await ending.wait()
    }

    /// Has the writer run `body` in its next commit, and returns once that is durable.
    ///
    /// `body` may run more than once, if a commit fails as a whole and its parts are tried alone.
    /// What is written for a container takes turns with what is written for others.
    func write<Value: Sendable>(
        _ lane: WriteRequest.Lane = .own, of container: ContainerKey? = nil, changes: Int = 1,
        bytes: Int = 0,
        _ body: @escaping @Sendable (inout OpenCommit) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let request = WriteRequest(
                lane: lane, container: container, changes: max(1, changes), bytes: bytes,
                perform: { commit in
                    let value = try body(&commit)
                    return { continuation.resume(returning: value) }
                },
                fail: { [path] in
                    continuation.resume(throwing: StorageError.translate($0, path: path))
                })
            if let refusal = inbox.submit(request) { continuation.resume(throwing: refusal) }
        }
    }

    /// Reads the last commit.
    ///
    /// Damage that a reader finds ends all writing, as damage does that the writer finds: nothing
    /// more may be acknowledged on top of it.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        do {
            return try await pool.read(body)
        } catch {
            if let failure = error as? DatabaseError, failure.isDamage {
                writer.giveUp(
                    .closed("damage was found: \(StorageError.translate(error, path: path))"))
            }
            throw StorageError.translate(error, path: path)
        }
    }
}

/// What a store finds when it opens its file.
private struct StoreOpening {
    let identity: UUIDBytes
    let head: LogPosition
    let epoch: Int64
    /// The devices whose end the progress, or a range, has not reached.
    let endedDevices: [UInt64]

    let ledger: CommitLedger

    /// The witness is there before the file says so, and then knows the log of the first commit.
    init(_ db: Database, _ witness: StoreWitness, _ lock: StoreLock) throws {
        let row = try Row.fetchOne(
            db,
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
                path: "shardHead", reason: "the log goes beyond its head")
        }
        self.identity = identity
        head = LogPosition(stored: row[1])
        epoch = row[2] + 1
        ledger = CommitLedger(
            witness, lock: lock, identity: identity, commits: row[4],
            isSealed: belfry_sqlite_is_sealed(db.sqliteConnection) == 1)
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
            return .commit
        }
        try ledger.noteBeginning(head: head)
        endedDevices = try UInt64.fetchAll(
            db,
            sql: """
                SELECT serial FROM device
                WHERE ended > min((SELECT position FROM progress WHERE shard = 0),
                    coalesce((SELECT min(position) - 1 FROM rangeTask), ?))
                ORDER BY ended DESC LIMIT ?
                """, arguments: [Int64.max, EndedDevices.limit]
        ).reversed()
    }
}

/// Says when the writer has ended.
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

    /// Waits for the end; returns why it was not an orderly one.
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
