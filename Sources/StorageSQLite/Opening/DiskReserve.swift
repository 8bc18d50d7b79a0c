import FoundationEssentials
import Glibc
import Storage
import Synchronization

/// Knows whether the disk has less room than what is kept for settling.
///
/// The file system is asked at most every few appends: it answers in a microsecond, but need not be
/// asked ten thousand times a second.
final class DiskReserve: Sendable {
    private let path: String
    private let reserve: UInt64
    private let appends = Atomic<UInt64>(0)
    private let isShort = Atomic<Bool>(false)

    init(path: String, reserve: UInt64) {
        self.path = path
        self.reserve = reserve
    }

    /// Checks that an append may use more room.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if the reserve is reached.
    func check() throws(StorageError) {
        guard reserve > 0 else { return }
        let count = appends.wrappingAdd(1, ordering: .relaxed).oldValue
        if count.isMultiple(of: 64) || isShort.load(ordering: .relaxed) {
            isShort.store(freeBytes.map { $0 < reserve } ?? false, ordering: .relaxed)
        }
        if isShort.load(ordering: .relaxed) { throw .noRoom(reason) }
    }

    /// Why appends are refused at this moment; `nil` if they are not.
    var shortage: String? {
        guard reserve > 0, let free = freeBytes, free < reserve else { return nil }
        return reason
    }

    private var reason: String {
        "less than \(reserve) bytes are free on the disk of \(path)"
    }

    /// The room on the disk; `nil` if it cannot be told.
    var freeBytes: UInt64? {
        var answer = statvfs()
        guard statvfs(path, &answer) == 0 else { return nil }
        return UInt64(answer.f_bavail) * UInt64(answer.f_frsize)
    }

    /// How many more files the disk holds; `nil` if it cannot be told, or has no such bound.
    var freeFiles: UInt64? {
        var answer = statvfs()
        guard statvfs(path, &answer) == 0, answer.f_files > 0 else { return nil }
        return UInt64(answer.f_favail)
    }
}
