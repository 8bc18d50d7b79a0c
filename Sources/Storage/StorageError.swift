import RelayModel

/// Why the store refused or failed.
package enum StorageError: Error, Sendable, Hashable {
    /// Another process has the file open; the text says which, where known.
    case locked(path: String, holder: String)
    /// The file was written by a newer version of Belfry.
    case newerSchema(found: String, known: String)
    /// The file is damaged, or is no Belfry database.
    case damaged(path: String, reason: String)
    /// A setting on which a promise rests could not be had.
    case unsafeSetting(name: String, wanted: String, found: String)
    /// There is no room on the disk, or the reserve is reached; nothing was written.
    case noRoom(String)
    /// Too much is waiting to be written; nothing was written.
    case overloaded(String)
    /// The progress is not where its owner left it.
    case progressMoved(ProgressMark)
    /// The store is closed, or gave up after a failed write.
    case closed(String)
}
