import CSQLite
import FoundationEssentials
import Glibc
import Migrations
import Storage
import StorageSQL

/// Copies a database file, also while a relay writes to it.
///
/// The copy is of one moment, whole, and smaller than the file: free pages are left out. It is
/// written under another name first, synced, opened and checked, and only then gets its name, so
/// that a file of that name is always good.
struct StoreBackup {
    /// What the copy is to be.
    enum Purpose: Sendable {
        /// A backup, on which no relay starts.
        case backup
        /// A store with an identity of its own.
        case store
    }

    let path: String
    let target: String
    var purpose = Purpose.backup

    func run() throws -> StoreReport {
        let files = FileManager.default
        guard !files.fileExists(atPath: target) else {
            throw StorageError.inaccessible(
                path: target, reason: "it exists already; a backup replaces nothing")
        }
        let partial = target + ".partial"
        Self.remove(partial)
        // The copy holds the same secrets, and SQLite writes into an empty file as it is.
        let descriptor = Glibc.open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StorageError.failed(partial, "it cannot be created", errno)
        }
        Glibc.close(descriptor)
        do {
            try copy(to: partial)
            try mark(partial)
            let report = try StoreReport.check(path: partial)
            guard report.problems.isEmpty else {
                throw StorageError.damaged(
                    path: path,
                    reason: "its copy is not sound: \(report.problems.joined(separator: "; "))")
            }
            try files.moveItem(atPath: partial, toPath: target)
            Self.sync(URL(filePath: target).deletingLastPathComponent().path)
            return report
        } catch {
            Self.remove(partial)
            throw error
        }
    }

    /// Removes a copy that is not whole, with what SQLite keeps beside it.
    private static func remove(_ partial: String) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            try? FileManager.default.removeItem(atPath: partial + ending)
        }
    }

    private func copy(to partial: String) throws {
        let connections = StoreConnections(path: path, settings: StoreSettings())
        try connections.inspectOutsideTransaction { db in
            guard try StoreSchema.version(db, path: path) > 0 else {
                throw StoreSchema.empty(path)
            }
            try db.database.execute(sql: "VACUUM INTO ?", arguments: [partial])
        }
        try Self.seal(partial)
    }

    /// Gives the pages of a new copy their checksums.
    ///
    /// SQLite writes pages of a copy that is larger than its cache before the first one, which
    /// says that pages have any: by then the layer below it has let them pass without.
    private static func seal(_ partial: String) throws {
        let descriptor = open(partial, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StorageError.failed(partial, "it cannot be opened", errno)
        }
        defer { close(descriptor) }
        let code = belfry_pages_reseal(descriptor)
        // Whose header reserves no room for them has none.
        guard code == 0 || code == EINVAL else {
            throw StorageError.failed(partial, "its checksums cannot be written", code)
        }
    }

    /// Says in the copy what it is.
    ///
    /// A store gets an identity of its own, because its log goes on at positions that another has
    /// used: with the old one, new pushes would have the `apns-id` and `nid` of others. What waits
    /// keeps its own.
    private func mark(_ partial: String) throws {
        let connections = StoreConnections(path: partial, settings: StoreSettings())
        let db = try connections.openConnection()
        defer { db.close() }
        if purpose == .store {
            try forgetMove(db)
            _ = try StoreSchema(migrations: Migration.released).apply(to: db, path: partial)
        }
        let application = purpose == .store ? StoreSchema.applicationID : StoreSchema.backupID
        try db.inTransaction(.deferred) {
            try db.execute(sql: "PRAGMA application_id = \(application)")
            if purpose == .store {
                // No snapshot is of this store, and an older process cannot settle in it.
                try db.execute(
                    sql: """
                        UPDATE store SET identity = randomblob(16), isWitnessed = 0;
                        UPDATE shardHead SET commits = 0;
                        UPDATE progress SET epoch = epoch + 1;
                        DELETE FROM stateSnapshot;
                        """)
            }
        }
        guard Self.sync(partial) else {
            throw StorageError.inaccessible(path: partial, reason: "it cannot be synced")
        }
    }

    /// A store that was moved away may be restored; one that is not whole yet may not.
    private func forgetMove(_ db: EmbeddedConnection) throws {
        guard let mark = try MoveMark.find(in: db.database) else { return }
        guard mark.direction == .away else { throw mark.refusal(at: path) }
        try db.execute(sql: "DROP TABLE storeMove")
    }

    /// Has the kernel write a file, or a directory's names, to the disk.
    @discardableResult static func sync(_ path: String) -> Bool {
        let descriptor = open(path.isEmpty ? "." : path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }
}

/// What is done about a store that is where another is to be restored.
package enum RestoredOver: Sendable, Hashable {
    /// It is refused.
    case nothing
    /// It is moved aside.
    case movedAside
}

/// Makes a store of a copy, in the place of another or where there was none.
struct StoreRestoring {
    let source: String
    let target: String
    let over: RestoredOver

    /// What lies beside a file and belongs to it.
    ///
    /// The file goes first: whoever starts meanwhile finds none.
    private static let endings = ["", "-wal", StoreWitness.ending]
    /// What a store is called that had to make room.
    private static let asideEnding = "-replaced"

    func run() throws -> StoreReport {
        guard source != target else {
            throw StorageError.inaccessible(
                path: target, reason: "a store is restored from a copy, under another name")
        }
        // Nobody writes to the old one meanwhile, under whatever name.
        let lock = try StoreLock(databasePath: target)
        defer { lock.release() }
        do {
            return try restore()
        } catch {
            // Where there was nothing, nothing is left.
            lock.withdraw()
            throw error
        }
    }

    /// Refuses what is refused whatever the copy is, and changes nothing.
    static func check(_ target: String, over: RestoredOver) throws {
        let lock = try StoreLock(databasePath: target)
        defer { lock.release() }
        defer { lock.withdraw() }
        _ = try movable(at: target, over)
    }

    /// The endings of what is at `target`, all of which can be moved aside.
    private static func movable(at target: String, _ over: RestoredOver) throws -> [String] {
        let files = FileManager.default
        let old = endings.filter { files.fileExists(atPath: target + $0) }
        guard old.isEmpty || over == .movedAside else {
            throw StorageError.inaccessible(
                path: target,
                reason: "there is a store, or what is left of one: "
                    + old.map { target + $0 }.joined(separator: ", ")
                    + "; --replace moves it aside")
        }
        let aside = target + asideEnding
        let there = endings.filter { files.fileExists(atPath: aside + $0) }
        // What a restore that was interrupted had not moved yet follows what it had.
        let isFollowing =
            !old.contains("") && there.contains("") && Set(old).isDisjoint(with: there)
        guard old.isEmpty || there.isEmpty || isFollowing else {
            throw StorageError.inaccessible(
                path: aside, reason: "it is there from another time; give it another name first")
        }
        return old
    }

    /// Does it while the lock is held.
    private func restore() throws -> StoreReport {
        let files = FileManager.default
        let old = try Self.movable(at: target, over)
        let aside = target + Self.asideEnding
        let new = target + StoreConnections.restoredEnding
        // One that an interrupted restore has left may be all that keeps an empty store from being
        // made here: it stays until there is another, and may be what is restored.
        let copy = target + ".restoring"
        try? files.removeItem(atPath: copy)
        let report = try StoreBackup(path: source, target: copy, purpose: .store).run()
        guard rename(copy, new) == 0 else {
            throw StorageError.failed(new, "it cannot be put there", errno)
        }
        for ending in old { try files.moveItem(atPath: target + ending, toPath: aside + ending) }
        try? files.removeItem(atPath: target + "-shm")
        SnapshotFile.removeAll(stem: target + "-snapshot-", except: nil)
        let folder = URL(filePath: target).deletingLastPathComponent().path
        // The new file is never on the disk beside the log of the old one.
        StoreBackup.sync(folder)
        try files.moveItem(atPath: new, toPath: target)
        StoreBackup.sync(folder)
        return report
    }
}
