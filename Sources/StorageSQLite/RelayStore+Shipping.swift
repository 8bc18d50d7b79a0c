package import RelayModel
import Storage
package import StorageSQL

extension LogSpool {
    /// Creates the spool of the store at `database`; nothing is read or written yet.
    ///
    /// - Throws: ``Storage/StorageError`` if the path is a link whose target does not exist.
    package convenience init(
        of database: String, settings: Settings = Settings(),
        now: @escaping @Sendable () -> Timestamp
    ) throws {
        self.init(at: try StorePlace.resolve(database), settings: settings, now: now)
    }
}

/// What continuous backup needs of a store on a file.
extension RelayStore {
    /// The engine and its spool; `nil` if the store was opened without one.
    private var shipped: (engine: EmbeddedEngine, spool: LogSpool)? {
        guard let engine = engine as? EmbeddedEngine, let spool = engine.spool else { return nil }
        return (engine, spool)
    }

    /// Begins a chain of segments under `name`, which will contain every commit from now on.
    ///
    /// - Precondition: The store was opened with a spool.
    /// - Throws: ``Storage/StorageError`` if the spool cannot be opened, or nothing can be written.
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

    /// Returns up to `count` bytes of the file, read past SQLite; fewer only at the end of the
    /// file.
    ///
    /// A checkpoint may be writing meanwhile. The segments since then contain what it writes.
    ///
    /// - Precondition: The store was opened with a spool.
    /// - Throws: ``Storage/StorageError`` if the disk cannot read it.
    package func fileBytes(at offset: Int, count: Int) throws -> [UInt8] {
        guard let (engine, _) = shipped else { preconditionFailure("there is no spool") }
        return try engine.lock.bytes(at: offset, count: count)
    }
}
