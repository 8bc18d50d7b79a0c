package import RelayModel
import Storage
package import StorageSQL

extension LogSpool {
    /// Prepares the spool of the store at `database`; nothing is read or written yet.
    ///
    /// - Throws: ``Storage/StorageError`` if the path leads nowhere.
    package convenience init(
        of database: String, settings: Settings = Settings(),
        now: @escaping @Sendable () -> Timestamp
    ) throws {
        self.init(at: try StorePlace.resolve(database), settings: settings, now: now)
    }
}

/// What continuous backup asks of a store on a file.
extension RelayStore {
    /// The engine, whose log is copied.
    private var shipped: (engine: EmbeddedEngine, spool: LogSpool)? {
        guard let engine = engine as? EmbeddedEngine, let spool = engine.spool else { return nil }
        return (engine, spool)
    }

    /// Begins a chain of segments under `name`: every commit from now on gets into one.
    ///
    /// - Precondition: The store was opened with a spool.
    /// - Throws: ``Storage/StorageError`` if the spool cannot be had, or nothing can be written.
    package func beginChain(_ name: String) async throws {
        guard let (engine, spool) = shipped else { preconditionFailure("there is no spool") }
        do {
            try spool.begin(name, store: storeIdentity.description)
        } catch {
            throw StorageError.inaccessible(path: place, reason: "\(error)")
        }
        engine.lock.sign(name)
        try await commitNothing()
    }

    /// Reads from the file beside SQLite; fewer bytes than `count` at its end.
    ///
    /// A checkpoint may be writing: the segments since then have what it writes.
    ///
    /// - Precondition: The store was opened with a spool.
    /// - Throws: ``Storage/StorageError`` if the disk cannot read it.
    package func fileBytes(at offset: Int, count: Int) throws -> [UInt8] {
        guard let (engine, _) = shipped else { preconditionFailure("there is no spool") }
        return try engine.lock.bytes(at: offset, count: count)
    }
}
