import FoundationEssentials
import Glibc
import Storage
import Synchronization

/// Watches whether the disk has less free space than the reserve that is kept for settling.
///
/// The file system is asked only once every 64 appends. The call takes a microsecond, but there may
/// be ten thousand appends a second.
final class DiskReserve: Sendable {
    private let path: String
    private let reserve: UInt64
    private let appends = Atomic<UInt64>(0)
    private let isShort = Atomic<Bool>(false)

    init(path: String, reserve: UInt64) {
        self.path = path
        self.reserve = reserve
    }

    /// Checks that an append may use more disk space.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if less than the reserve is free.
    func check() throws(StorageError) {
        guard reserve > 0 else { return }
        let count = appends.wrappingAdd(1, ordering: .relaxed).oldValue
        if count.isMultiple(of: 64) || isShort.load(ordering: .relaxed) {
            isShort.store(freeBytes.map { $0 < reserve } ?? false, ordering: .relaxed)
        }
        if isShort.load(ordering: .relaxed) { throw .noRoom(reason) }
    }

    /// The reason why appends are refused now; `nil` if they are not.
    var shortage: String? {
        guard reserve > 0, let free = freeBytes, free < reserve else { return nil }
        return reason
    }

    private var reason: String {
        "less than \(reserve) bytes are free on the disk of \(path)"
    }

    /// The free bytes on the disk; `nil` if they cannot be read.
    var freeBytes: UInt64? {
        var answer = statvfs()
        guard statvfs(path, &answer) == 0 else { return nil }
        return UInt64(answer.f_bavail) * UInt64(answer.f_frsize)
    }

    /// The number of files that the disk can still hold; `nil` if it is unknown or unlimited.
    var freeFiles: UInt64? {
        var answer = statvfs()
        guard statvfs(path, &answer) == 0, answer.f_files > 0 else { return nil }
        return UInt64(answer.f_favail)
    }
}
