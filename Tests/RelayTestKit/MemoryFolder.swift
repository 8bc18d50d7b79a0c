import Foundation

/// A folder in memory, where a sync costs nothing.
enum MemoryFolder {
    /// The room in bytes that a server and some hundred stores need.
    private static let leastRoom: UInt64 = 1 << 30

    /// The folder's path.
    ///
    /// It is `nil` where the system has no such folder or too little room in it, as in a container
    /// whose `/dev/shm` has 64 MB.
    static var path: String? {
        let path = "/dev/shm"
        var answer = statvfs()
        guard FileManager.default.isWritableFile(atPath: path), statvfs(path, &answer) == 0,
            UInt64(answer.f_bavail) * UInt64(answer.f_frsize) > leastRoom
        else { return nil }
        return path
    }
}
