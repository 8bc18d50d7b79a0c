import FoundationEssentials
import Glibc
package import Migrations
package import Storage
package import StorageSQL

// A store on an embedded SQLite file. One writer with a thread of its own commits the requests of
// many callers together, and runs every checkpoint. Readers see the last commit and never write. A
// lock file keeps a second process out. Every acknowledged commit is on the disk
// (`synchronous=FULL`).
extension RelayStore {
    /// Opens or creates the store at `path`, and brings its schema up to date.
    ///
    /// It blocks while the file's pages are checked, up to ``StoreSettings/quickCheckBytes``, and
    /// during migrations. `spool` receives the committed frames, for continuous backup.
    ///
    /// - Throws: ``StorageError`` if another process has the file, it is damaged or of a newer
    ///   version, or a setting that a guarantee needs cannot be set.
    package static func open(
        path: String, settings: StoreSettings = StoreSettings(), spool: LogSpool? = nil
    ) throws -> RelayStore {
        try open(path: path, settings: settings, migrations: Migration.released, spool: spool)
    }

    /// Opens the store with other migrations than the released ones, for tests of the mechanism.
    package static func open(
        path: String, settings: StoreSettings, migrations: [Migration], spool: LogSpool? = nil
    ) throws -> RelayStore {
        let path = try StorePlace.resolve(path)
        // No lock file is left behind where there is no store.
        let endings = ["", "-wal", StoreWitness.ending, StoreConnections.restoredEnding]
        let isThere = endings.contains { FileManager.default.fileExists(atPath: path + $0) }
        guard isThere || settings.creation == .whenMissing else {
            // Without permission to search a directory it is unknown whether the file exists.
            if access(path, F_OK) != 0, errno == EACCES {
                throw StorageError.failed(path, "its folder cannot be searched", EACCES)
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

    /// Brings the schema of the file at `path` up to date; returns the names of the applied
    /// migrations.
    ///
    /// - Throws: ``StorageError`` as ``open(path:settings:)`` does.
    package static func migrate(path: String) throws -> [String] {
        let path = try StorePlace.resolve(path)
        let lock = try StoreLock(databasePath: path)
        defer { lock.release() }
        do {
            var settings = StoreSettings()
            // An operator who runs the migration has the time to have the file rewritten.
            settings.sealedBytes = .max
            var connections = StoreConnections(path: path, settings: settings, lock: lock)
            // A move can be continued or undone only at the newest version. The mark of the move
            // stays.
            connections.admitsMoved = true
            return try connections.prepare(StoreSchema(migrations: Migration.released))
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }

    /// Accepts the pages of the file at `path` as they are, and recomputes their checksums.
    ///
    /// It is for a file that another program changed on purpose.
    ///
    /// - Throws: ``StorageError`` if the file is in use or has a write-ahead log.
    package static func reseal(path: String) throws {
        let path = try StorePlace.resolve(path)
        let lock = try StoreLock(databasePath: path)
        defer { lock.release() }
        guard LogTrimmer.size(of: path + "-wal") == 0 else {
            throw StorageError.inaccessible(
                path: path,
                reason:
                    "it has a write-ahead log: start the relay once, which moves it into the file")
        }
        let code = lock.reseal()
        guard code == 0 else {
            throw StorageError.inaccessible(
                path: path,
                reason: code == EINVAL
                    ? "its pages have no checksums" : String(cString: strerror(code)))
        }
    }

    /// Returns the version of the schema of the file at `path`, which may be open elsewhere; 0 if
    /// it is empty.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if it is not a store of Belfry.
    package static func schemaVersion(of path: String) throws -> Int {
        do {
            return try StoreConnections(path: path, settings: StoreSettings())
                .inspect { try StoreSchema.version($0, path: path) }
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }

    /// The path of the file.
    package var path: String { engine.place }
}
