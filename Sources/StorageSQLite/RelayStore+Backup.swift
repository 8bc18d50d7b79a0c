package import Storage
package import StorageSQL

extension RelayStore {
    /// Checks the file at `path`: every page, every reference, and the rules between the tables.
    ///
    /// A running relay may have it open. The check reads the whole file as of one moment, and
    /// writes nothing.
    ///
    /// - Throws: ``StorageError`` if the file cannot be opened as a database of Belfry.
    package static func check(path: String) throws -> StoreReport {
        try StoreReport.check(path: path)
    }

    /// Makes a store from the copy at `source`, which is checked first and stays unchanged.
    ///
    /// The store continues where the copy ends, and has an identity of its own. An existing file at
    /// `target` is refused, or moved aside together with its write-ahead log. Otherwise that log
    /// would be taken for the new file's.
    ///
    /// - Throws: ``StorageError``; then `target` is unchanged.
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

    /// Refuses what ``restore(from:to:over:)`` would refuse for any copy, before a copy is fetched.
    ///
    /// - Throws: ``StorageError``, for example if a relay has the file at `target`.
    package static func checkRestoring(to target: String, over: RestoredOver) throws {
        try StoreRestoring.check(try StorePlace.resolve(target), over: over)
    }

    /// Copies the file at `path` to `target`, which must not exist, and checks the copy.
    ///
    /// A relay may be running on the file; its write-ahead log cannot shrink meanwhile.
    ///
    /// - Throws: ``StorageError``; then there is no file `target`.
    package static func backUp(path: String, to target: String) throws -> StoreReport {
        do {
            return try StoreBackup(path: try StorePlace.resolve(path), target: target).run()
        } catch {
            throw StorageError.opening(path, failed: error)
        }
    }
}
