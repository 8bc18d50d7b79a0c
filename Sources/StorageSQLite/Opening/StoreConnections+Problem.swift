import FoundationEssentials
import RelayModel
import Storage
import StorageSQL

extension StoreConnections {
    /// Returns what is wrong with the file behind `db` by what its witness has `known`; `nil` if
    /// nothing is.
    func problem(of db: EmbeddedConnection, _ known: WitnessRecord?) throws -> StorageError? {
        try StoreWitness.problem(of: db, known, path: path) ?? problemBelowTheLog(known)
    }

    /// Returns why the file does not belong under the write-ahead log beside it; `nil` if it does,
    /// or nothing is known about it.
    ///
    /// The log has the pages with the identity and the number of commits too, so what is read
    /// through it says nothing about the file. What was in the file before the log was begun would
    /// be missing unnoticed.
    func problemBelowTheLog(_ known: WitnessRecord?) -> StorageError? {
        guard let known, LogTrimmer.size(of: path + "-wal") > 0 else { return nil }
        if known.isEnded, let both = state(), both.commits > known.commits {
            // A relay that has started since the witness was read noted that it goes on.
            guard (try? StoreWitness.record(of: path)) == known else { return nil }
            return .lost(
                path: path,
                reason: "it ended in order after \(known.commits) commits, with everything in the "
                    + "file, but the write-ahead log beside it, \(path)-wal, goes on to "
                    + "\(both.commits): it belongs to a newer file; put that back with its "
                    + "witness, or move the log away to go on with this one")
        }
        guard let base = known.base, let file = state(isAlone: true),
            file.identity != known.identity || file.commits < base
        else { return nil }
        return .lost(
            path: path,
            reason: "the write-ahead log beside it, \(path)-wal, was begun after \(base) commits, "
                + "and the file is an older copy or another store's, with \(file.commits): put "
                + "back the original; or make a store from a backup with belfry restore, which "
                + "moves the remaining files aside")
    }

    /// Returns the identity of the store and its number of commits; `nil` if they cannot be read.
    ///
    /// With `isAlone` the log is left out. A crash during a checkpoint may leave pages of different
    /// commits, which only the log completes.
    private func state(isAlone: Bool = false) -> (identity: UUIDBytes, commits: Int64)? {
        guard let db = try? openConnection(isReadOnly: true, isAlone: isAlone) else { return nil }
        defer { db.close() }
        let row = try? Row.fetchOne(
            db.database, sql: "SELECT store.identity, commits FROM store, shardHead")
        guard let row, let identity = UUIDBytes(bytes: row[0] as Data) else { return nil }
        return (identity, row[1] as Int64)
    }
}
