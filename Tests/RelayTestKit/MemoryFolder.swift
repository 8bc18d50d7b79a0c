import Foundation

/// A place in memory, where a sync costs nothing.
enum MemoryFolder {
    /// Less than this leaves no room for a server and some hundred stores.
    private static let leastRoom: UInt64 = 1 << 30

    /// Where it is; `nil` where the system has none, or it has little room left, as in a container
    /// that was given 64 MB of it.
    static var path: String? {
        let path = "/dev/shm"
        var answer = statvfs()
        guard FileManager.default.isWritableFile(atPath: path), statvfs(path, &answer) == 0,
            UInt64(answer.f_bavail) * UInt64(answer.f_frsize) > leastRoom
        else { return nil }
        return path
    }
}
