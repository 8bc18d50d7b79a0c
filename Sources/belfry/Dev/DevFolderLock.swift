import FoundationEssentials
import Glibc
import Storage

/// The folder of a `belfry dev`, which one process has from its start to its end.
///
/// Two that start at once would each make keys up, and write them and the gateway's certificate
/// over the other's, before one of them finds that the store is taken. The kernel takes the lock
/// away when the process ends, however it ends.
struct DevFolderLock {
    private let descriptor: Int32

    /// Takes the folder.
    ///
    /// - Throws: ``Storage/StorageError/locked(path:holder:)`` if another process has it, and
    ///   ``DevFailure`` if nothing can be written there.
    init(_ folder: URL) throws {
        let path = folder.appending(path: "dev.lock").path
        let opened = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw DevFailure("\(path) cannot be written: \(reason)")
        }
        // Where a file system knows no locks, the store's own has to do.
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            close(opened)
            throw StorageError.locked(path: folder.path, holder: "another belfry dev")
        }
        descriptor = opened
    }

    /// Gives it back.
    func end() {
        close(descriptor)
    }
}
