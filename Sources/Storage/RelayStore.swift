import Foundation
import GRDB
package import Migrations
package import RelayModel
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
    let ranges = RangeBell()
    /// What refuses changes before they would be lost; whoever watches the bounds sets it.
    package let gate = IntakeGate()
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
        let lock = try StoreLock(databasePath: path)
        do {
            let connections = StoreConnections(path: path, settings: settings)
            _ = try connections.prepare(StoreSchema(migrations: migrations))
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
        let lock = try StoreLock(databasePath: path)
        defer { lock.release() }
        do {
            return try StoreConnections(path: path, settings: StoreSettings())
                .prepare(StoreSchema(migrations: Migration.released))
        } catch {
            throw StorageError.opening(path, failed: error)
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
    package static var newestSchemaVersion: Int { Migration.released.count }

    /// Commits since the store was opened: with ``head()``, how many requests shared one.
    package var commitCount: UInt64 { writer.commitCount }

    private init(_ connections: StoreConnections, lock: StoreLock) throws {
        path = connections.path
        settings = connections.settings
        pool = try connections.openPool()
        let opening = try Self.opening(of: pool)
        storeIdentity = opening.identity
        epoch = opening.epoch
        horizon = LogHorizon(head: opening.head, settings: settings)
        disk = DiskReserve(path: path, reserve: settings.diskReserveBytes)
        inbox = WriteInbox(settings: settings)
        ending = WriterEnding()
        writer = GroupWriter(
            pool: pool, inbox: inbox, horizon: horizon, settings: settings)
        writer.start { [pool, ending, horizon] in
            let hasFailed = horizon.closed != nil
            horizon.close(.closed("the store is closed"))
            Self.close(pool, folding: !hasFailed)
            lock.release()
            ending.finish()
        }
    }

    private static func opening(of pool: DatabasePool) throws -> StoreOpening {
        do {
            return try pool.write { try StoreOpening($0) }
        } catch {
            close(pool, folding: (error as? DatabaseError).map { !$0.leavesDiskUnknown } ?? true)
            throw error
        }
    }

    /// Closes the file; folds the write-ahead log into it, so that a copy of the file alone holds
    /// everything, unless it is unknown what is on the disk: then nothing is written any more.
    private static func close(_ pool: DatabasePool, folding: Bool) {
        if folding {
            // Who closes last removes the log, and readers may not.
            pool.invalidateReadOnlyConnections()
            pool.writeWithoutTransaction { try? StoreConnections.fold($0) }
        }
        try? pool.close()
    }

    deinit {
        inbox.end(.closed("the store is closed"))
    }

    /// Writes what is waiting, closes the file, and gives the lock back.
    package func close() async {
        inbox.end(.closed("the store is closed"))
        await ending.wait()
    }

    /// Has the writer run `body` in its next commit, and returns once that is durable.
    ///
    /// `body` may run more than once, if a commit fails as a whole and its parts are tried alone.
    func write<Value: Sendable>(
        _ lane: WriteRequest.Lane = .own, changes: Int = 1, bytes: Int = 0,
        _ body: @escaping @Sendable (inout OpenCommit) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let request = WriteRequest(
                lane: lane, changes: max(1, changes), bytes: bytes,
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

    init(_ db: Database) throws {
        try db.execute(sql: "UPDATE progress SET epoch = epoch + 1 WHERE shard = 0")
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT store.identity, shardHead.position, progress.epoch,
                    (SELECT max(position) FROM logEntry) AS lastEntry
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
        epoch = row[2]
    }
}

/// Says when the writer has ended.
private final class WriterEnding: Sendable {
    private struct State {
        var isFinished = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isFinished = state.withLock { state in
                if !state.isFinished { state.waiters.append(continuation) }
                return state.isFinished
            }
            if isFinished { continuation.resume() }
        }
    }
}
