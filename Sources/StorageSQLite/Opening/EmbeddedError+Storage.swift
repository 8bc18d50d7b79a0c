import CSQLite
import FoundationEssentials
import Glibc
import Storage

extension StorageError {
    /// What a failure of SQLite means for the store.
    enum Verdict {
        /// The disk is full: nothing was written, and a later attempt may work.
        case noRoom
        /// Another connection is in the way: nothing was written.
        case busy
        /// The content of the disk is unknown or damaged: nothing more may be written.
        case fatal
        /// A statement was refused; the transaction continues without it.
        case refused
    }

    /// Judges an error of SQLite.
    ///
    /// A failed write or fsync is fatal even if a second attempt would succeed, because the kernel
    /// forgets the pages that it could not write. Only a full disk is temporary. Growing the shared
    /// memory file (`SQLITE_IOERR_SHMSIZE`) fails for no other reason.
    static func verdict(on error: EmbeddedError) -> Verdict {
        if error.extendedCode == EmbeddedError.sharedMemorySize { return .noRoom }
        return switch error.code {
        case SQLITE_FULL: .noRoom
        case SQLITE_BUSY, SQLITE_LOCKED: .busy
        case SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CANTOPEN, SQLITE_READONLY,
            SQLITE_NOMEM, SQLITE_PERM, SQLITE_PROTOCOL, SQLITE_NOLFS:
            .fatal
        default: .refused
        }
    }

    /// Returns the error that a caller gets for an error of SQLite; other errors are returned
    /// unchanged.
    static func translate(_ error: any Error, path: String) -> any Error {
        guard let error = error as? EmbeddedError else { return error }
        let reason = "\(error.extendedCode) \(error.message)\(error.systemCause)"
        switch (verdict(on: error), error.code) {
        case (.noRoom, _): return StorageError.noRoom("the disk is full (SQLite \(reason))")
        case (.busy, _): return StorageError.overloaded("the database is locked (SQLite \(reason))")
        case (.fatal, _) where error.isWrongChecksum:
            return StorageError.damaged(path: path, reason: wrongChecksum)
        case (.fatal, SQLITE_CORRUPT), (.fatal, SQLITE_NOTADB):
            return StorageError.damaged(path: path, reason: "SQLite \(reason)")
        case (.fatal, _): return StorageError.closed("SQLite \(reason)")
        case (.refused, SQLITE_MISUSE): return StorageError.closed("the store is closed")
        case (.refused, _): return error
        }
    }

    /// Returns the error that a caller gets if the file at `path` could not be opened.
    static func opening(_ path: String, failed error: any Error) -> any Error {
        if error is CocoaError {
            return StorageError.inaccessible(path: path, reason: error.systemReason)
        }
        guard let error = error as? EmbeddedError else { return error }
        if error.code == SQLITE_NOTADB { return notSQLite(path) }
        switch verdict(on: error) {
        case .noRoom, .busy: return translate(error, path: path)
        case .fatal where error.isDamage, .refused: break
        case .fatal:
            if error.mayBeBarred, let barred = barred(path) { return barred }
            return StorageError.inaccessible(path: path, reason: cause(of: error, at: path))
        }
        let reason = error.isWrongChecksum ? wrongChecksum : error.description
        return StorageError.damaged(path: path, reason: reason)
    }

    /// Returns the error for the `lines` that a check of the pages at `path` found, or nil if the
    /// pages are sound.
    static func checking(_ path: String, found lines: [String]) -> StorageError? {
        guard lines != ["ok"] else { return nil }
        return unread(path, among: lines)
            ?? .damaged(path: path, reason: lines.joined(separator: "; "))
    }

    /// Returns the error if the `lines` that a check of the pages at `path` found say that the disk
    /// could not read a page.
    ///
    /// The check then does not know whether that page is sound, and what else it found may follow
    /// from that.
    static func unread(_ path: String, among lines: [String]) -> StorageError? {
        // For such a page, the check gives only the code.
        let code = "error code=\(EmbeddedError.failedRead)"
        guard lines.contains(where: { $0.contains(code) }) else { return nil }
        let failure = EmbeddedError(EmbeddedError.failedRead)
        return .inaccessible(path: path, reason: cause(of: failure, at: path))
    }

    /// Returns the error for a file that is not a store; it does not report damage.
    static func noStore(_ path: String, _ reason: String) -> StorageError {
        .inaccessible(path: path, reason: "it is not a store of Belfry: \(reason)")
    }

    /// Returns the error for a file without SQLite's header: another file, or a store that lost its
    /// beginning.
    static func notSQLite(_ path: String) -> StorageError {
        noStore(path, "it does not begin as an SQLite file; if it was one, restore a backup")
    }

    /// Returns the error for a failed system call at a start.
    ///
    /// If there is no space left, it is ``StorageError/noRoom(_:)``, after which a start waits.
    static func failed(_ path: String, _ what: String, _ code: Int32) -> StorageError {
        let cause = "\(what): \(String(cString: strerror(code)))"
        guard code == ENOSPC || code == EDQUOT else {
            return .inaccessible(path: path, reason: cause)
        }
        return .noRoom("\(path): \(cause)")
    }

    /// Returns an error for the first of the file, its log and its shared memory that is not
    /// writable.
    ///
    /// No file is opened for this check: closing it again would release SQLite's POSIX locks of it.
    private static func barred(_ path: String) -> StorageError? {
        for name in ["", "-wal", "-shm"].map({ path + $0 }) {
            var found = stat()
            guard stat(name, &found) == 0 else { continue }
            guard FileIdentity(found).isRegular else {
                return .inaccessible(path: name, reason: FileIdentity(found).oddity)
            }
            guard access(name, R_OK | W_OK) == 0 else {
                return failed(name, "it cannot be opened for writing", errno)
            }
        }
        return nil
    }

    /// Returns why a file that need not be damaged cannot be used.
    private static func cause(of error: EmbeddedError, at path: String) -> String {
        switch error.code {
        case SQLITE_CANTOPEN:
            guard access(path, R_OK) != 0 else {
                let folder = URL(filePath: path).deletingLastPathComponent().path
                return access(folder, W_OK) == 0
                    ? "it, or its -wal or -shm beside it, cannot be opened"
                    : "nothing can be written to \(folder): \(String(cString: strerror(errno)))"
            }
            return errno == ENOENT
                ? "there is no such file"
                : "it cannot be opened: \(String(cString: strerror(errno)))"
        case SQLITE_READONLY, SQLITE_PERM:
            return "it is read-only: it, its directory and the files beside it must be writable"
        case SQLITE_IOERR:
            let code = "\(error.extendedCode)\(error.systemCause)"
            return "the disk could not read or write it (SQLite \(code)): look at the system's log"
        case SQLITE_NOMEM: return "there is not enough memory for it"
        default: return "SQLite \(error.extendedCode) \(error.message)"
        }
    }

    private static var wrongChecksum: String {
        "page \(belfry_sqlite_bad_page()) does not match its checksum: restore a backup"
    }
}

extension EmbeddedError {
    /// Whether missing permissions may be the cause.
    var mayBeBarred: Bool {
        [SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM].contains(code)
    }

    /// The system's error of a failed sync or write, which SQLite does not report itself.
    var systemCause: String {
        let cause =
            switch extendedCode {
            case Self.failedSync: belfry_sqlite_sync_error()
            case Self.failedWrite: belfry_sqlite_write_error()
            default: Int32(0)
            }
        guard cause != 0 else { return "" }
        return ": \(String(cString: strerror(cause)))\(Self.remedy(for: cause))"
    }

    private static func remedy(for cause: Int32) -> String {
        switch cause {
        case ENOSPC, EDQUOT: "; make room on the disk, then start again"
        case EFBIG:
            "; raise the limit of a file's size (ulimit -f, LimitFSIZE=, or the file system's), "
                + "then start again"
        default: ""
        }
    }

    /// Whether a page does not contain what was written.
    var isDamage: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB].contains(code) || isWrongChecksum
    }

    /// Whether the disk could not read a page.
    var isFailedRead: Bool { extendedCode == Self.failedRead }

    /// Whether a page that was read does not match its checksum.
    var isWrongChecksum: Bool { extendedCode == Self.wrongChecksum }

    /// SQLITE_IOERR_DATA, which only Belfry's checksum layer (the VFS) returns.
    private static let wrongChecksum: Int32 = SQLITE_IOERR | 32 << 8
    /// SQLITE_IOERR_READ.
    static let failedRead: Int32 = SQLITE_IOERR | 1 << 8
    /// SQLITE_IOERR_WRITE.
    private static let failedWrite: Int32 = SQLITE_IOERR | 3 << 8
    /// SQLITE_IOERR_FSYNC.
    private static let failedSync: Int32 = SQLITE_IOERR | 4 << 8
    /// SQLITE_IOERR_SHMSIZE.
    static let sharedMemorySize: Int32 = SQLITE_IOERR | 19 << 8
}
