import Foundation
import Synchronization

/// An exclusive lock beside the database file, so that one process only writes to it.
///
/// SQLite alone would let a second process in. Two connections of which one checkpoints while the
/// other commits can damage a file with SQLite before 3.51.3; and two relays would deliver twice.
/// The kernel releases the lock when the process ends, however it ends.
final class StoreLock: Sendable {
    private let descriptor: Mutex<Int32?>

    /// Takes the lock of the database at `path`.
    ///
    /// - Throws: ``StorageError/locked(path:holder:)`` if somebody has it, and
    ///   ``StorageError/damaged(path:reason:)`` if the lock file cannot be opened.
    init(databasePath path: String) throws(StorageError) {
        let lockPath = path + ".lock"
        let opened = Glibc.open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else {
            throw .damaged(
                path: path, reason: "cannot open \(lockPath): \(String(cString: strerror(errno)))")
        }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(opened)
            let holder = try? String(contentsOfFile: lockPath, encoding: .utf8)
            throw .locked(path: path, holder: holder.flatMap(Self.holder) ?? "another process")
        }
        let text = Array("\(getpid())\n".utf8)
        if ftruncate(opened, 0) == 0 { _ = pwrite(opened, text, text.count, 0) }
        descriptor = Mutex(opened)
    }

    deinit {
        release()
    }

    /// Gives the lock back; the file stays, because removing it would race with the next owner.
    func release() {
        let held = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        if let held { Glibc.close(held) }
    }

    private static func holder(_ text: String) -> String? {
        Int32(text.prefix { $0.isNumber }).map { "process \($0)" }
    }
}
