import FoundationEssentials
import Glibc
package import Migrations
package import Storage
package import StorageSQL

// A store on an embedded SQLite file: there is one writer, which owns a thread, commits what many
// callers want written together, and does every checkpoint; readers see the last commit and never
// write. A lock file keeps a second process out. Everything that was acknowledged is on the disk
// (`synchronous=FULL`).
extension RelayStore {
    /// Opens or creates the store at `path`, and brings its schema up to date.
    ///
    /// It blocks: on the check of the file's pages, up to ``StoreSettings/quickCheckBytes``, and on
    /// migrations. `spool` gets what is committed, for continuous backup.
    ///
    /// - Throws: ``StorageError`` if another process has it, the file is damaged or of a newer
    ///   version, or a setting on which a promise rests cannot be had.
    package static func open(
        path: String, settings: StoreSettings = StoreSettings(), spool: LogSpool? = nil
    ) throws -> RelayStore {
        try open(path: path, settings: settings, migrations: Migration.released, spool: spool)
    }

    /// Opens the store with a private list of migrations, for tests of the mechanism.
    package static func open(
        path: String, settings: StoreSettings, migrations: [Migration], spool: LogSpool? = nil
    ) throws -> RelayStore {
        let path = try StorePlace.resolve(path)
        // A lock is not left behind where there is nothing to lock.
        let endings = ["", "-wal", StoreWitness.ending, StoreConnections.restoredEnding]
        let isThere = endings.contains { FileManager.default.fileExists(atPath: path + $0) }
        guard isThere || settings.creation == .whenMissing else {
            // Whoever may not look into a directory does not know what is there.
            if access(path, F_OK) != 0, errno == EACCES {
                throw StorageError.failed(path, "it cannot be looked for", EACCES)
            }
            throw StorageError.missing(path: path)
        }
        let lock = try StoreLock(databasePath: path)
        do {
            let connections = StoreConnections(
                path: path, settings: settings, lock: lock, spool: spool)
            _ = try connections.prepare(StoreSchema(migrations: migrations))
            try connections.sealSecrets(migrations: migrations)
            let (engine, opened) = try EmbeddedEngine.open(connections, lock)
            return RelayStore(engine, opened, settings: settings)
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
            var connections = StoreConnections(path: path, settings: settings, lock: lock)
            // Its move goes on, or is taken back, at the newest version alone; the mark stays.
            connections.admitsMoved = true
            return try connections.prepare(StoreSchema(migrations: Migration.released))
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
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if it is no store of Belfry.
    package static func schemaVersion(of path: String) throws -> Int {
        do {
            return try StoreConnections(path: path, settings: StoreSettings())
                .inspect { try StoreSchema.version($0, path: path) }
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }

    /// The file.
    package var path: String { engine.place }
}
