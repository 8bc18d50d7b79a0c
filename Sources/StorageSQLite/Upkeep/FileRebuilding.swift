import CSQLite
import FoundationEssentials
import Glibc
package import RelayModel
package import Storage

/// Builds the file of a store from a copy and the segments of its log since the copy was begun.
///
/// The store may have been written to during the copy. Only whole commits get into the file. The
/// frames after the last mark of a segment wait in memory until another mark follows: at most the
/// frames of one transaction.
package struct FileRebuilding: ~Copyable {
    private let path: String
    private let descriptor: Int32
    /// Commits after this time are left out.
    private let limit: Timestamp
    private var pending: [(segment: LogSegment, from: Int)] = []
    private var earlier: SegmentHeader?
    private var pageBytes = 0
    private var pages = 0
    /// The pages that were overwritten by segments, in groups of 1024, because they may be far
    /// apart.
    private var touched: [Int: [Bool]] = [:]
    /// The last commit that is in the file.
    package private(set) var mark: LogMark?
    /// The first commit that is in a segment and later than the limit.
    package private(set) var next: LogMark?

    /// Creates the file at `path`, for its owner only; it must not exist.
    ///
    /// - Throws: ``Storage/StorageError``.
    package init(at path: String, through limit: Timestamp) throws(StorageError) {
        self.path = path
        self.limit = limit
        descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .failed(path, "it cannot be created", errno) }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Writes a part of the copy.
    package func write(_ part: [UInt8], at offset: Int) throws(StorageError) {
        let count = pwrite(descriptor, part, part.count, off_t(offset))
        guard count == part.count else {
            throw .failed(path, "it cannot be written", count < 0 ? errno : ENOSPC)
        }
    }

    /// Discards the parts that were written, before any segment was laid over them.
    package func empty() throws(StorageError) {
        guard ftruncate(descriptor, 0) == 0 else {
            throw .failed(path, "it cannot be written", errno)
        }
    }

    /// Lays the commits of a segment over the file, up to the limit.
    ///
    /// - Returns: Whether a later segment may contain more commits within the limit.
    /// - Throws: ``Storage/StorageError/damaged(path:reason:)`` if the segment does not follow the
    ///   previous one.
    package mutating func lay(_ segment: LogSegment) throws(StorageError) -> Bool {
        let header = segment.header
        guard segment.isWhole, earlier.map(segment.follows) ?? true else {
            throw .damaged(
                path: path, reason: "segment \(header.sequence) does not follow the one before it")
        }
        earlier = header
        let wanted = header.marks.prefix { $0.moment <= limit }
        if wanted.count < header.marks.count { next = header.marks[wanted.count] }
        guard let last = wanted.last else {
            if next == nil { pending.append((segment, header.first)) }
            return next == nil
        }
        for (segment, from) in pending { try lay(segment, from, through: segment.header.last) }
        try lay(segment, header.first, through: last.frame)
        pending = last.frame < header.last ? [(segment, last.frame + 1)] : []
        mark = last
        pages = header.generation.pagesAfterCommit(
            segment.bytes, at: segment.offset(of: last.frame))
        return next == nil
    }

    private mutating func lay(
        _ segment: LogSegment, _ first: Int, through last: Int
    ) throws(StorageError) {
        let size = segment.header.generation.pageBytes
        pageBytes = size
        guard first <= last else { return }
        for frame in first...last {
            let start = segment.offset(of: frame)
            let number = Int(LogGeneration.word(segment.bytes[start..<(start + 4)]))
            guard number > 0 else {
                throw .damaged(
                    path: path,
                    reason: "a frame in segment "
                        + "\(segment.header.sequence) has no page")
            }
            let page = start + LogGeneration.frameHeaderBytes
            try write(Array(segment.bytes[page..<(page + size)]), at: (number - 1) * size)
            let (group, index) = number.quotientAndRemainder(dividingBy: 1024)
            touched[group, default: Array(repeating: false, count: 1024)][index] = true
        }
    }

    /// Sets the file's length, writes its pages' checksums, and syncs the file.
    ///
    /// - Throws: ``Storage/StorageError``.
    package mutating func finish() throws(StorageError) {
        guard mark != nil, pages > 0, ftruncate(descriptor, off_t(pages * pageBytes)) == 0 else {
            throw .damaged(path: path, reason: "no commit could be applied to the copy")
        }
        let header = try page(1)
        // The header says whether pages reserve space for checksums (docs/storage.md).
        if header[20] == 8 {
            for (group, marks) in touched {
                for (index, isTouched) in marks.enumerated() where isTouched {
                    let number = group * 1024 + index
                    if number <= pages { try seal(number) }
                }
            }
        }
        guard fsync(descriptor) == 0 else { throw .failed(path, "it cannot be synced", errno) }
    }

    private func page(_ number: Int) throws(StorageError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: pageBytes)
        let count = pread(descriptor, &bytes, pageBytes, off_t((number - 1) * pageBytes))
        guard count == pageBytes else { throw .failed(path, "it cannot be read", errno) }
        return bytes
    }

    private func seal(_ number: Int) throws(StorageError) {
        var bytes = try page(number)
        let end = pageBytes - 8
        let sum = belfry_page_checksum(bytes, Int32(end), Int64(number))
        for index in 0..<8 { bytes[end + index] = UInt8(truncatingIfNeeded: sum >> (8 * index)) }
        try write(bytes, at: (number - 1) * pageBytes)
    }
}
