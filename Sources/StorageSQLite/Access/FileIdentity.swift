import Glibc

/// The identity of a file, whatever its names are.
struct FileIdentity: Sendable, Hashable {
    let device: UInt64
    let inode: UInt64
    /// The number of its names (hard links).
    let names: Int
    private let kind: UInt32

    init(_ found: stat) {
        device = UInt64(found.st_dev)
        inode = UInt64(found.st_ino)
        names = Int(found.st_nlink)
        kind = found.st_mode & S_IFMT
    }

    /// Whether it is a regular file.
    var isRegular: Bool { kind == S_IFREG }

    /// What it is instead of a regular file, for messages.
    var oddity: String { kind == S_IFDIR ? "it is a directory" : "it is not a regular file" }

    /// Finds the file at `path`; `nil` if there is none.
    init?(path: String) {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        self.init(found)
    }

    /// Returns whether `path` still leads to this file; `nil` if the system cannot tell.
    ///
    /// A file system over a network may fail to answer once, or memory may be short. That says
    /// nothing about the file, and must not end the store.
    func isStill(at path: String) -> Bool? {
        var found = stat()
        guard stat(path, &found) == 0 else {
            return [ENOENT, ENOTDIR].contains(errno) ? false : nil
        }
        return isSame(as: FileIdentity(found))
    }

    /// Returns whether both are the same file; the number of names may differ.
    func isSame(as other: FileIdentity) -> Bool {
        (device, inode) == (other.device, other.inode)
    }
}
