import CSQLite
import FoundationEssentials
import Glibc
import Migrations
import Storage
import StorageSQL

/// Copies a database file, even while a relay writes to it.
///
/// The copy shows one moment, is complete, and is smaller than the file, because free pages are
/// left out. It is first written under another name, synced, opened and checked. Only then does it
/// get its name, so a file of that name is always good.
struct StoreBackup {
    /// The purpose of the copy.
    enum Purpose: Sendable {
        /// A backup; no relay starts on it.
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
                path: target, reason: "it exists already; a backup never replaces a file")
        }
        let partial = target + ".partial"
        Self.remove(partial)
        // The copy contains the same secrets, and SQLite keeps the mode of an existing empty file.
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

    /// Removes an incomplete copy, with the files that SQLite keeps beside it.
    private static func remove(_ partial: String) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            try? FileManager.default.removeItem(atPath: partial + ending)
        }
    }

    private func copy(to partial: String) throws {
        let connections = StoreConnections(path: path, settings: StoreSettings())
        // A copy of what the file and another's log make together would seem sound.
        let known = try? StoreWitness.record(of: path)
        if let problem = connections.problemBelowTheLog(known) { throw problem }
        try connections.inspectOutsideTransaction { db in
            guard try StoreSchema.version(db, path: path) > 0 else {
                throw StoreSchema.empty(path)
            }
            try db.database.execute(sql: "VACUUM INTO ?", arguments: [partial])
        }
        try Self.seal(partial)
    }

    /// Writes the checksums of a new copy's pages.
    ///
    /// If a copy is larger than its cache, SQLite writes other pages before the first, which says
    /// that pages have checksums. Until then the checksum layer lets pages pass without one.
    private static func seal(_ partial: String) throws {
        let descriptor = open(partial, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StorageError.failed(partial, "it cannot be opened", errno)
        }
        defer { close(descriptor) }
        let code = belfry_pages_reseal(descriptor)
        // EINVAL: the header reserves no space for checksums, so the copy has none.
        guard code == 0 || code == EINVAL else {
            throw StorageError.failed(partial, "its checksums cannot be written", code)
        }
    }

    /// Marks the copy as a backup or a store.
    ///
    /// A store gets an identity of its own, because its log continues at positions that another
    /// store has used too. With the old identity, its new pushes would have the same `apns-id` and
    /// `nid` as others. Deliveries that wait keep theirs.
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
                // No snapshot of the other store may be used, and a process of an older epoch
                // cannot settle in this one.
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

    /// Removes the mark of a store that was moved away; refuses a store whose move here is
    /// incomplete.
    private func forgetMove(_ db: EmbeddedConnection) throws {
        guard let mark = try MoveMark.find(in: db.database) else { return }
        guard mark.direction == .away else { throw mark.refusal(at: path) }
        try db.execute(sql: "DROP TABLE storeMove")
    }

    /// Syncs a file, or a directory's names, to the disk; returns whether that worked.
    @discardableResult static func sync(_ path: String) -> Bool {
        let descriptor = open(path.isEmpty ? "." : path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }
}

/// What to do about an existing store in the place of the restored one.
package enum RestoredOver: Sendable, Hashable {
    /// Refuse to restore.
    case nothing
    /// Move the existing store aside.
    case movedAside
}

/// Makes a store from a copy, either in the place of an existing store or in an empty place.
struct StoreRestoring {
    let source: String
    let target: String
    let over: RestoredOver
    var rename = FileMoves.onDisk

    /// The suffixes of the file and the files that belong to it.
    ///
    /// The database file is moved first, so a process that starts meanwhile finds no file.
    private static let endings = ["", "-wal", StoreWitness.ending]
    /// The suffix of a store that was moved aside.
    private static let asideEnding = "-replaced"

    func run() throws -> StoreReport {
        guard source != target else {
            throw StorageError.inaccessible(
                path: target, reason: "the copy and the store to make must have different names")
        }
        // The lock keeps other processes from writing to the old file meanwhile, under whatever
        // name.
        let lock = try StoreLock(databasePath: target)
        defer { lock.release() }
        do {
            return try restore()
        } catch {
            // In an empty place, no lock file is left behind.
            lock.withdraw()
            throw error
        }
    }

    /// Refuses what is refused for any copy; changes nothing.
    static func check(_ target: String, over: RestoredOver) throws {
        let lock = try StoreLock(databasePath: target)
        defer { lock.release() }
        defer { lock.withdraw() }
        _ = try movable(at: target, over)
    }

    /// Returns the suffixes of the files at `target`, after checking that all can be moved aside.
    private static func movable(at target: String, _ over: RestoredOver) throws -> [String] {
        let files = FileManager.default
        let old = endings.filter { files.fileExists(atPath: target + $0) }
        guard old.isEmpty || over == .movedAside else {
            throw StorageError.inaccessible(
                path: target,
                reason: "there is a store already, or what is left of one: "
                    + old.map { target + $0 }.joined(separator: ", ")
                    + "; --replace moves it aside")
        }
        let aside = target + asideEnding
        let there = endings.filter { files.fileExists(atPath: aside + $0) }
        // Files that an interrupted restore did not move yet may join those that it moved.
        let isFollowing =
            !old.contains("") && there.contains("") && Set(old).isDisjoint(with: there)
        guard old.isEmpty || there.isEmpty || isFollowing else {
            throw StorageError.inaccessible(
                path: aside, reason: "it exists from an earlier restore; give it another name first"
            )
        }
        return old
    }

    /// Restores while the lock is held.
    private func restore() throws -> StoreReport {
        let files = FileManager.default
        _ = try Self.movable(at: target, over)
        let new = target + StoreConnections.restoredEnding
        // A file left by an interrupted restore may be all that prevents a start from creating an
        // empty store here, and may itself be the source. So it stays until the new one replaces
        // it.
        let isResumed = files.fileExists(atPath: new)
        let copy = target + ".restoring"
        try? files.removeItem(atPath: copy)
        defer { try? files.removeItem(atPath: copy) }
        let report = try StoreBackup(path: source, target: copy, purpose: .store).run()
        // The copy may have taken hours.
        let old = try Self.movable(at: target, over)
        let code = rename(copy, new)
        guard code == 0 else {
            throw StorageError.failed(new, "it cannot be moved into place", code)
        }
        var moves = FileMoves(by: rename)
        do throws(FileMoves.Failure) {
            try exchange(old, for: new, by: &moves)
        } catch {
            let left = moves.takeBack()
            if left.isEmpty, !isResumed { try? files.removeItem(atPath: new) }
            StoreBackup.sync(folder)
            throw Self.refusal(error, left)
        }
        return report
    }

    /// The folder of the store.
    private var folder: String { URL(filePath: target).deletingLastPathComponent().path }

    /// Moves the existing files aside, and the new one into their place.
    private func exchange(
        _ old: [String], for new: String, by moves: inout FileMoves
    ) throws(FileMoves.Failure) {
        for ending in old {
            try moves.move(target + ending, to: target + Self.asideEnding + ending)
        }
        try? FileManager.default.removeItem(atPath: target + "-shm")
        SnapshotFile.removeAll(stem: target + "-snapshot-", except: nil)
        // The new file must never be on the disk beside the log of the old one.
        StoreBackup.sync(folder)
        try moves.move(new, to: target)
        StoreBackup.sync(folder)
    }

    /// Returns the error for a file that could not be moved; `left` has what could not be taken
    /// back.
    private static func refusal(
        _ failure: FileMoves.Failure, _ left: [FileMoves.Move]
    ) -> StorageError {
        let cause =
            "it cannot be moved to \(failure.move.to): \(String(cString: strerror(failure.code)))"
        guard !left.isEmpty else {
            return .inaccessible(
                path: failure.move.from, reason: "\(cause); everything is where it was before")
        }
        let moves = left.map { "\($0.from) to \($0.to)" }.joined(separator: ", then ")
        return .inaccessible(
            path: failure.move.from,
            reason: "\(cause), and what had been moved aside cannot be moved back: run the same "
                + "command again once files can be moved there, or go back to the old store: "
                + "move \(moves)")
    }
}
