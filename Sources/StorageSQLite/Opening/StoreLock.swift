import CSQLite
import FoundationEssentials
import Glibc
import Storage
import Synchronization

/// Finds where a store's file really is: a symbolic link is another name of the same store.
enum StorePlace {
    /// Returns the path of the file itself, behind all links; the file need not exist yet.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if it is a link whose target does not
    ///   exist.
    static func resolve(_ path: String) throws(StorageError) -> String {
        if let real = realPath(path) { return real }
        var found = stat()
        if lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFLNK {
            throw .inaccessible(path: path, reason: "it is a link to a file that does not exist")
        }
        let url = URL(filePath: path)
        guard let folder = realPath(url.deletingLastPathComponent().path) else { return path }
        return folder == "/" ? "/\(url.lastPathComponent)" : "\(folder)/\(url.lastPathComponent)"
    }

    private static func realPath(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}

/// Exclusive locks of a database file, so that only one process writes to it.
///
/// SQLite alone would let a second process in. With SQLite before 3.51.3, two connections can
/// damage a file if one checkpoints while the other commits. And two relays would deliver
/// everything twice. The kernel releases the locks when the process ends, however it ends.
///
/// There are two locks. The lock of `<file>.lock` says who has the store, even while there is no
/// file yet. The lock of the file itself holds whatever name another process uses for the file.
/// Locks of `flock` and SQLite's own locks do not affect each other. But the process loses SQLite's
/// locks when it closes any descriptor of the file. So this descriptor is closed after SQLite's,
/// and no code in this process may open another one meanwhile.
final class StoreLock: Sendable {
    private struct Held {
        var lock: Int32
        var file: Int32?
    }

    let path: String
    /// The former content of the lock file: the process ID of the last holder, and the word that it
    /// signed.
    let before: String
    /// Whether the lock file did not exist before.
    private let isNew: Bool
    private let held: Mutex<Held?>

    /// Takes the lock of the database at `path`, and of the file itself if it exists.
    ///
    /// - Throws: ``StorageError/locked(path:holder:)`` if another process has a lock, and
    ///   ``StorageError/inaccessible(path:reason:)`` if a file cannot be opened, has two names, or
    ///   is not a regular file.
    init(databasePath path: String) throws(StorageError) {
        self.path = path
        let lockPath = path + ".lock"
        try Self.checkFiles(beside: path)
        let made = Glibc.open(lockPath, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        let opened =
            made >= 0 ? made : Glibc.open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        isNew = made >= 0
        guard opened >= 0 else {
            throw .failed(path, "cannot open \(lockPath)", errno)
        }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(opened)
            let holder = try? String(contentsOfFile: lockPath, encoding: .utf8)
            throw .locked(path: path, holder: holder.flatMap(Self.holder) ?? "another process")
        }
        before = (try? String(contentsOfFile: lockPath, encoding: .utf8)) ?? ""
        held = Mutex(Held(lock: opened))
        do throws(StorageError) {
            try lockFile()
        } catch {
            withdraw()
            release()
            throw error
        }
        sign(nil)
    }

    /// Removes the lock file if this process created it.
    ///
    /// It is for a path that turns out not to be a store: after a mistyped name, no new file stays
    /// beside the user's own.
    func withdraw() {
        if isNew { unlink(path + ".lock") }
    }

    /// Refuses anything other than a regular file at the paths of the store.
    ///
    /// Opening a pipe would block until a process writes to it, and no file is created beside a
    /// directory.
    private static func checkFiles(beside path: String) throws(StorageError) {
        for ending in ["", ".lock", StoreWitness.ending, "-wal", "-shm"] {
            guard let found = FileIdentity(path: path + ending), !found.isRegular else { continue }
            throw .inaccessible(path: path + ending, reason: found.oddity)
        }
    }

    /// Writes this process's ID and `word` into the lock file.
    ///
    /// If the next holder finds the word, no other process had the lock in between.
    func sign(_ word: String?) {
        let text = Array(("\(getpid())\n" + (word.map { "\($0)\n" } ?? "")).utf8)
        held.withLock { held in
            guard let lock = held?.lock else { return }
            if ftruncate(lock, 0) == 0 { _ = pwrite(lock, text, text.count, 0) }
            // A power cut must not bring back the word of an earlier holder.
            if word != nil || before.contains("-") { _ = fsync(lock) }
        }
    }

    deinit {
        release()
    }

    /// Locks the file itself, once it exists.
    ///
    /// It must be called only while no connection in this process has the file open.
    func lockFile() throws(StorageError) {
        guard held.withLock({ $0 != nil && $0?.file == nil }),
            let identity = FileIdentity(path: path)
        else { return }
        guard identity.isRegular else {
            throw .inaccessible(path: path, reason: identity.oddity)
        }
        guard identity.names == 1 else {
            throw .inaccessible(
                path: path,
                reason: "the file has \(identity.names) names (hard links), and its write-ahead "
                    + "log belongs to one of them: remove the others, or copy the file with "
                    + "belfry backup")
        }
        let opened = Glibc.open(path, O_RDWR | O_CLOEXEC)
        guard opened >= 0 else {
            throw .failed(path, "it cannot be opened for writing", errno)
        }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(opened)
            let process = Self.locker(of: identity).map { "process \($0)" } ?? "another process"
            throw .locked(path: path, holder: "\(process), under another name")
        }
        held.withLock { $0?.file = opened }
    }

    /// Whether the path still leads to the locked file, and the file has no other name.
    var isInPlace: Bool {
        held.withLock { held in
            var found = stat()
            guard let file = held?.file, fstat(file, &found) == 0 else { return false }
            let identity = FileIdentity(found)
            return identity.names == 1 && identity.isStill(at: path) ?? true
        }
    }

    /// Returns the first `count` bytes of the file, read past SQLite; `nil` if there are fewer.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the disk cannot read them.
    func header(_ count: Int) throws(StorageError) -> [UInt8]? {
        let (bytes, code) = held.withLock { held -> ([UInt8]?, Int32) in
            guard let file = held?.file else { return (nil, 0) }
            var bytes = [UInt8](repeating: 0, count: count)
            let read = pread(file, &bytes, count, 0)
            return read == count ? (bytes, 0) : (nil, read < 0 ? errno : 0)
        }
        guard code == 0 else { throw .failed(path, "it cannot be read", code) }
        return bytes
    }

    /// Returns up to `count` bytes of the file, read past SQLite.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the disk cannot read them.
    func bytes(at offset: Int, count: Int) throws(StorageError) -> [UInt8] {
        // This is outside the lock, because the descriptor stays open until `release()`.
        guard let file = held.withLock({ $0?.file }) else {
            throw .inaccessible(path: path, reason: "it is closed")
        }
        var bytes = [UInt8](repeating: 0, count: count)
        let read = pread(file, &bytes, count, off_t(offset))
        guard read >= 0 else { throw .failed(path, "it cannot be read", errno) }
        return read == count ? bytes : Array(bytes.prefix(read))
    }

    /// Recomputes the checksums of the pages from their present content; returns 0 or `errno`.
    func reseal() -> Int32 {
        held.withLock { held in
            guard let file = held?.file else { return ENOENT }
            return belfry_pages_reseal(file)
        }
    }

    /// Releases the locks.
    ///
    /// The lock file stays, because removing it would race with the next owner.
    func release() {
        let released = held.withLock { held in
            defer { held = nil }
            return held
        }
        guard let released else { return }
        if let file = released.file { Self.give(back: file) }
        Self.give(back: released.lock)
    }

    /// Unlocks and closes a descriptor.
    ///
    /// Closing alone does not release a lock of `flock`: a child process that was just forked
    /// shares the open file, and the lock with it, until it executes its program.
    private static func give(back descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    private static func holder(_ text: String) -> String? {
        Int32(text.prefix { $0.isNumber }).map { "process \($0)" }
    }

    /// Returns the ID of the process that has the `flock` of a file, from the kernel's list.
    private static func locker(of file: FileIdentity) -> Int32? {
        // One reading can miss a lock while other locks on the machine come and go.
        for _ in 0..<5 {
            for words in kernelLocks(of: file) where words[1] == "FLOCK" {
                return Int32(words[4])
            }
        }
        return nil
    }

    /// Returns the words of each line about a file in one reading of the kernel's list of locks.
    ///
    /// The list is read in pieces and may change between them, so a lock that is held can be
    /// missing.
    static func kernelLocks(of file: FileIdentity) -> [[Substring]] {
        let lines = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? ""
        return lines.split(separator: "\n").map { $0.split(separator: " ") }.filter { words in
            // 1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF
            words.count > 5
                && words[5].split(separator: ":").last == Substring("\(file.inode)")
        }
    }
}
