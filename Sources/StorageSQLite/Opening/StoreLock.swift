import CSQLite
import FoundationEssentials
import Glibc
import Storage
import Synchronization

/// Where a store's file really is: a symbolic link is another name, and not another store.
enum StorePlace {
    /// The path of the file itself, behind all links; also of one that is not there yet.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if it is a link that leads nowhere.
    static func resolve(_ path: String) throws(StorageError) -> String {
        if let real = realPath(path) { return real }
        var found = stat()
        if lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFLNK {
            throw .inaccessible(path: path, reason: "it is a link to a file that is not there")
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

/// Which file it is, whatever its names are.
struct FileIdentity: Sendable, Hashable {
    let device: UInt64
    let inode: UInt64
    /// How many names it has.
    let names: Int
    private let kind: UInt32

    init(_ found: stat) {
        device = UInt64(found.st_dev)
        inode = UInt64(found.st_ino)
        names = Int(found.st_nlink)
        kind = found.st_mode & S_IFMT
    }

    /// Whether it is a file with contents.
    var isRegular: Bool { kind == S_IFREG }

    /// What it is instead, for people.
    var oddity: String { kind == S_IFDIR ? "it is a directory" : "it is no regular file" }

    /// The file at `path`; `nil` if there is none.
    init?(path: String) {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        self.init(found)
    }

    /// Whether it is the same file, however many names it has by now.
    func isSame(as other: FileIdentity) -> Bool {
        (device, inode) == (other.device, other.inode)
    }
}

/// Exclusive locks of a database file, so that one process only writes to it.
///
/// SQLite alone would let a second process in. Two connections of which one checkpoints while the
/// other commits can damage a file with SQLite before 3.51.3; and two relays would deliver twice.
/// The kernel releases the locks when the process ends, however it ends.
///
/// There are two: of `<file>.lock`, which says who has it, also while there is no file yet; and of
/// the file itself, which holds whatever name somebody else uses for it. Locks of `flock` and those
/// of SQLite do not know of each other. But SQLite's are lost when the process closes any
/// descriptor of the file: so the one here is closed after SQLite's, and nobody here opens
/// another meanwhile.
final class StoreLock: Sendable {
    private struct Held {
        var lock: Int32
        var file: Int32?
    }

    let path: String
    /// What stood in the lock file before: the process that had the lock last, and what it signed.
    let before: String
    /// Whether there was no lock file before.
    private let isNew: Bool
    private let held: Mutex<Held?>

    /// Takes the lock of the database at `path`, and of the file if it is there.
    ///
    /// - Throws: ``StorageError/locked(path:holder:)`` if somebody has it, and
    ///   ``StorageError/inaccessible(path:reason:)`` if a file cannot be opened, has two names, or
    ///   is none.
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

    /// Takes the lock file away if there was none before: what it stands beside is no store, and
    /// whoever mistyped a name finds nothing new beside their own file.
    func withdraw() {
        if isNew { unlink(path + ".lock") }
    }

    /// Refuses what is no file in the place of one: opening a pipe waits for whoever writes to it,
    /// and nothing is made beside a folder.
    private static func checkFiles(beside path: String) throws(StorageError) {
        for ending in ["", ".lock", StoreWitness.ending, "-wal", "-shm"] {
            guard let found = FileIdentity(path: path + ending), !found.isRegular else { continue }
            throw .inaccessible(path: path + ending, reason: found.oddity)
        }
    }

    /// Writes into the lock file who has it, and a word by which whoever has it next can tell that
    /// nobody had it between.
    func sign(_ word: String?) {
        let text = Array(("\(getpid())\n" + (word.map { "\($0)\n" } ?? "")).utf8)
        held.withLock { held in
            guard let lock = held?.lock else { return }
            if ftruncate(lock, 0) == 0 { _ = pwrite(lock, text, text.count, 0) }
            // A power cut must not bring back the word of one who had it before.
            if word != nil || before.contains("-") { _ = fsync(lock) }
        }
    }

    deinit {
        release()
    }

    /// Locks the file itself, once it is there.
    ///
    /// It is opened only if nobody in this process can have it.
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
            throw .failed(path, "it cannot be opened to be written", errno)
        }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(opened)
            let process = Self.locker(of: identity).map { "process \($0)" } ?? "another process"
            throw .locked(path: path, holder: "\(process), under another name")
        }
        held.withLock { $0?.file = opened }
    }

    /// Whether the name still leads to the file that is locked, and no other name does.
    var isInPlace: Bool {
        held.withLock { held in
            var found = stat()
            guard let file = held?.file, fstat(file, &found) == 0,
                let named = FileIdentity(path: path)
            else { return false }
            return named.isSame(as: FileIdentity(found)) && named.names == 1
        }
    }

    /// The first `count` bytes of the file, read beside SQLite; `nil` if there are fewer.
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

    /// Up to `count` bytes of the file, read beside SQLite.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the disk cannot read them.
    func bytes(at offset: Int, count: Int) throws(StorageError) -> [UInt8] {
        // Not under the lock: the descriptor is closed at the end only.
        guard let file = held.withLock({ $0?.file }) else {
            throw .inaccessible(path: path, reason: "it is closed")
        }
        var bytes = [UInt8](repeating: 0, count: count)
        let read = pread(file, &bytes, count, off_t(offset))
        guard read >= 0 else { throw .failed(path, "it cannot be read", errno) }
        return read == count ? bytes : Array(bytes.prefix(read))
    }

    /// Writes the checksums of the pages anew, as the pages are; returns `errno`, 0 if it is done.
    func reseal() -> Int32 {
        held.withLock { held in
            guard let file = held?.file else { return ENOENT }
            return belfry_pages_reseal(file)
        }
    }

    /// Gives the locks back; the lock file stays, because removing it would race with the next
    /// owner.
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
    /// Closing alone does not end a lock of `flock`: a process that was just forked has the same
    /// open file until it executes its program, and the lock with it.
    private static func give(back descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    private static func holder(_ text: String) -> String? {
        Int32(text.prefix { $0.isNumber }).map { "process \($0)" }
    }

    /// The process that has the `flock` of a file, as the kernel tells it.
    private static func locker(of file: FileIdentity) -> Int32? {
        // One reading can leave out a lock while others on the machine come and go.
        for _ in 0..<5 {
            for words in kernelLocks(of: file) where words[1] == "FLOCK" {
                return Int32(words[4])
            }
        }
        return nil
    }

    /// The words of each line about a file in one reading of the kernel's list of locks.
    ///
    /// The list is read in pieces, and changes between them: a lock that is held can be missing.
    static func kernelLocks(of file: FileIdentity) -> [[Substring]] {
        let lines = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? ""
        return lines.split(separator: "\n").map { $0.split(separator: " ") }.filter { words in
            // 1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF
            words.count > 5
                && words[5].split(separator: ":").last == Substring("\(file.inode)")
        }
    }
}
