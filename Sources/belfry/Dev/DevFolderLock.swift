import FoundationEssentials
import Glibc
import Storage

/// The lock of a `belfry dev` on its folder, held from its start to its end.
///
/// Without it, two processes that start at once would overwrite each other's keys and gateway
/// certificate before one of them finds the store locked. The kernel releases the lock when the
/// process ends, however it ends.
struct DevFolderLock {
    private let descriptor: Int32

    /// Locks the folder.
    ///
    /// - Throws: ``Storage/StorageError/locked(path:holder:)`` if another process has it, and
    ///   ``DevFailure`` if the lock file cannot be written.
    init(_ folder: URL) throws {
        let path = folder.appending(path: "dev.lock").path
        let opened = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw DevFailure("\(path) cannot be written: \(reason)")
        }
        // On a file system without locks, the store's own lock must suffice.
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            close(opened)
            throw StorageError.locked(path: folder.path, holder: "another belfry dev")
        }
        descriptor = opened
    }

    /// Releases the lock.
    func end() {
        close(descriptor)
    }
}
