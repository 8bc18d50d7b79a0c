package import Storage
package import StorageSQL

extension RelayStore {
    /// Checks the file at `path`, which may be open in a running relay: every page, every
    /// reference, and what must hold between the tables.
    ///
    /// It reads the whole file, of one moment, and writes nothing.
    ///
    /// - Throws: ``StorageError`` if the file cannot be opened as a database of Belfry.
    package static func check(path: String) throws -> StoreReport {
        try StoreReport.check(path: path)
    }

    /// Makes a store of the copy at `source`, which stays as it is, and checks it first.
    ///
    /// The store goes on where the copy ends, with an identity of its own. What was at `target` is
    /// refused, or moved aside with its write-ahead log, which would be taken for the new one's.
    ///
    /// - Throws: ``StorageError``; then `target` is as it was.
    package static func restore(
        from source: String, to target: String, over: RestoredOver = .nothing
    ) throws -> StoreReport {
        do {
            return try StoreRestoring(
                source: try StorePlace.resolve(source), target: try StorePlace.resolve(target),
                over: over
            ).run()
        } catch {
            throw StorageError.opening(source, failed: error)
        }
    }

    /// Refuses what ``restore(from:to:over:)`` would refuse whatever the copy is, for whoever has
    /// it still to fetch.
    ///
    /// - Throws: ``StorageError``, for example if a relay has the file at `target`.
    package static func checkRestoring(to target: String, over: RestoredOver) throws {
        try StoreRestoring.check(try StorePlace.resolve(target), over: over)
    }

    /// Copies the file at `path` to `target`, which must not exist, and checks the copy.
    ///
    /// A relay may be running on it; its write-ahead log cannot shrink meanwhile.
    ///
    /// - Throws: ``StorageError``; then there is no file `target`.
    package static func backUp(path: String, to target: String) throws -> StoreReport {
        do {
            return try StoreBackup(path: path, target: target).run()
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }
}
