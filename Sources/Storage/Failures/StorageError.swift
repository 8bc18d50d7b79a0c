package import RelayModel

/// Why the store refused or failed.
package enum StorageError: Error, Sendable, Hashable {
    /// Another process has the file open.
    ///
    /// The text names it if it is known.
    case locked(path: String, holder: String)
    /// The store was written by a newer version of Belfry.
    case newerSchema(found: String, known: String)
    /// The file is damaged, or is no Belfry database.
    case damaged(path: String, reason: String)
    /// The file lacks acknowledged changes: it is missing, truncated, older, or another store.
    case lost(path: String, reason: String)
    /// There is no store, and the caller did not ask to create one.
    case missing(path: String)
    /// There is no store in the server's schema, and the caller did not ask to create one.
    case missingSchema(place: String, schema: String)
    /// The migrations applied to the store are not those of a release.
    case foreignSchema(path: String, reason: String)
    /// The file, or its lock, cannot be opened.
    case inaccessible(path: String, reason: String)
    /// The secrets in the file are encrypted with a key that is not configured.
    case secrets(path: String, reason: String)
    /// A setting that a guarantee depends on could not be applied.
    case unsafeSetting(name: String, wanted: String, found: String)
    /// The disk is full, or the reserve is reached.
    ///
    /// Nothing was written.
    case noRoom(String)
    /// Too much is waiting to be written.
    ///
    /// Nothing was written.
    case overloaded(String)
    /// The database is unreachable or starting.
    ///
    /// Nothing was written.
    case unavailable(String)
    /// A limit is reached beyond which the relay refuses changes rather than lose them.
    ///
    /// Nothing was written.
    case bounded(IntakeBound, reason: String)
    /// An entry of the log cannot be read.
    ///
    /// All entries before it were returned.
    case unreadable(UnreadableEntry)
    /// The progress is not where its owner left it, because another process moved it.
    case progressMoved(ProgressMark)
    /// The write would have exceeded a quota.
    ///
    /// Nothing was written.
    case overQuota(QuotaRefusal)
    /// The container does not exist in this environment.
    case unknownContainer(ContainerKey)
    /// The store is closed, or stopped after a failed write.
    case closed(String)
}

extension StorageError: CustomStringConvertible {
    /// What to do about a schema that another version of Belfry wrote.
    package static let othersSchema = "use the version that wrote it, or restore a backup"

    /// One sentence for people that says what to do where that is known.
    package var description: String {
        switch self {
        case .locked(let path, let holder):
            "\(path) is in use by \(holder): one relay at a time"
        case .newerSchema(let found, let known):
            "the store was written by a newer Belfry (schema \(found), this one knows \(known)): "
                + "use that version, or restore a backup"
        case .damaged(let path, let reason): "\(path) is damaged: \(reason)"
        case .lost(let path, let reason):
            "\(path) lacks changes that were acknowledged: \(reason)"
        case .missing(let path):
            "there is no store at \(path), and the relay makes none by itself, because the store "
                + "may be on a disk that is not mounted: to make one, start once with "
                + "--storage-create whenMissing (BELFRY_STORAGE_CREATE, storage.create), or run "
                + "belfry migrate --database \(path)"
        case .missingSchema(let place, let schema):
            "there is no store at \(place), and the relay makes none by itself: to make one, start "
                + "once with --storage-create whenMissing (BELFRY_STORAGE_CREATE, storage.create), "
                + "or run belfry migrate --database postgresql://… --schema \(schema)"
        case .foreignSchema(let path, let reason):
            "\(path) does not have the schema of a released Belfry: \(reason)"
        case .inaccessible(let path, let reason): "\(path) cannot be used: \(reason)"
        case .secrets(let path, let reason):
            "the secrets in \(path) cannot be read: \(reason)"
        case .unsafeSetting(let name, let wanted, let found):
            "SQLite's \(name) is \(found) instead of \(wanted): acknowledged changes could be lost"
        case .noRoom(let reason): "no room on the disk: \(reason)"
        case .overloaded(let reason): "too much is waiting to be written: \(reason)"
        case .unavailable(let reason): "the database cannot be used right now: \(reason)"
        case .bounded(_, let reason): "changes are refused for a while: \(reason)"
        case .unreadable(let entry):
            "the log's entry \(entry.position) cannot be read: \(entry.reason)"
        case .progressMoved(let mark):
            "another relay moved the progress to \(mark.position): this relay must stop"
        case .overQuota(let refusal): refusal.description
        case .unknownContainer(let key): "there is no container \(key)"
        case .closed(let reason): "the store is closed: \(reason)"
        }
    }
}
