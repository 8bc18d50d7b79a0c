import FoundationEssentials
import Glibc

/// The folder in which segments wait until they are shipped.
///
/// A segment gets its name when it is complete. The newest one is kept after it was shipped,
/// because it says how far the chain has come.
struct SpoolFolder: Sendable {
    static let ending = "-spool"
    private static let waiting = ".segment"
    private static let shipped = ".shipped"
    private static let closed = "closed"
    private static let noted = "marks"

    let path: String

    /// A segment with its number and its file name.
    struct Entry: Sendable, Hashable {
        let sequence: UInt64
        let isShipped: Bool
        let name: String
    }

    init(of database: String) {
        path = database + Self.ending
    }

    /// The file that contains marks until their frames are in a segment.
    var marks: String { "\(path)/\(Self.noted)" }

    /// Returns the segments in order.
    func entries() -> [Entry] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.compactMap { name in
            for ending in [Self.waiting, Self.shipped] where name.hasSuffix(ending) {
                return UInt64(name.dropLast(ending.count)).map {
                    Entry(sequence: $0, isShipped: ending == Self.shipped, name: name)
                }
            }
            return nil
        }.sorted { $0.sequence < $1.sequence }
    }

    /// Returns the path of a waiting segment.
    func file(_ sequence: UInt64) -> String { "\(path)/\(Self.name(sequence))\(Self.waiting)" }

    private static func name(_ sequence: UInt64) -> String {
        let digits = String(sequence)
        return String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
    }

    /// Creates the folder, for its owner only.
    func make() throws(SpoolFailure) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw SpoolFailure("\(path) cannot be made", errno)
        }
    }

    /// Removes everything in the folder.
    func clear() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
            unlink("\(path)/\(name)")
        }
    }

    /// Writes a segment, and removes the shipped one before it.
    ///
    /// It is not synced. The next start notices what a power cut took, and begins a new chain.
    ///
    /// - Returns: The size of the segment in bytes.
    func write(
        _ header: SegmentHeader, _ log: borrowing LogFile
    ) throws(SpoolFailure) -> Int {
        let partial = "\(path)/partial"
        let opened = Glibc.open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw SpoolFailure("\(partial) cannot be opened", errno) }
        defer { Glibc.close(opened) }
        let head = Array(header.text.utf8)
        try Self.write(head, to: opened)
        var bytes = head.count
        var number = header.first
        while number <= header.last {
            let count = min(LogFile.framesAtOnce, header.last + 1 - number)
            let frames = try log.frames(number, count)
            guard frames.count == count * log.generation.frameBytes else {
                throw SpoolFailure("the write-ahead log ends before frame \(header.last)")
            }
            try Self.write(frames, to: opened)
            bytes += frames.count
            number += count
        }
        guard rename(partial, file(header.sequence)) == 0 else {
            throw SpoolFailure("\(partial) cannot be renamed", errno)
        }
        if header.sequence > 1 {
            unlink("\(path)/\(Self.name(header.sequence - 1))\(Self.shipped)")
        }
        return bytes
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(SpoolFailure) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SpoolFailure("a segment cannot be written", errno) }
            rest = count == rest.count ? [] : Array(rest.dropFirst(count))
        }
    }

    /// Removes a segment that was shipped; the newest is renamed instead, because it holds the
    /// chain's position.
    func letGo(_ sequence: UInt64, isNewest: Bool) {
        let name = file(sequence)
        if isNewest {
            rename(name, "\(path)/\(Self.name(sequence))\(Self.shipped)")
        } else {
            unlink(name)
        }
    }

    /// Reads the header of a segment; `nil` if it cannot be read.
    func header(of entry: Entry) -> SegmentHeader? {
        let file = open("\(path)/\(entry.name)", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        // The usual size is tried first: after days without the destination, a start reads tens of
        // thousands of headers.
        for size in [Self.usualHeaderBytes, SegmentHeader.maximumBytes] {
            var bytes = [UInt8](repeating: 0, count: size)
            let count = pread(file, &bytes, size, 0)
            guard count >= 0 else { return nil }
            if let found = SegmentHeader.read(bytes.prefix(count)) { return found.header }
            guard count == size else { return nil }
        }
        return nil
    }

    /// The size of a header with a hundred marks, in bytes; most have fewer.
    private static let usualHeaderBytes = 16 << 10

    /// Returns the size of a segment in bytes; 0 if it cannot be read.
    func bytes(of entry: Entry) -> Int {
        var found = stat()
        return stat("\(path)/\(entry.name)", &found) == 0 ? Int(found.st_size) : 0
    }

    // MARK: An orderly end

    /// Syncs everything in the folder, and then records that this was done.
    func close(at chain: String, _ sequence: UInt64) {
        let names = entries().map { "\(path)/\($0.name)" }
        guard names.allSatisfy(Self.sync) else { return }
        let place = "\(path)/\(Self.closed)"
        guard
            FileManager.default.createFile(
                atPath: place, contents: Data("\(chain) \(sequence)\n".utf8),
                attributes: [.posixPermissions: 0o600]), Self.sync(place), Self.sync(path)
        else {
            unlink(place)
            return
        }
    }

    /// Returns whether the last end was orderly, at this segment of this chain, and removes the
    /// record.
    func takeClosing(at chain: String, _ sequence: UInt64) -> Bool {
        let place = "\(path)/\(Self.closed)"
        defer { unlink(place) }
        return FileManager.default.contents(atPath: place) == Data("\(chain) \(sequence)\n".utf8)
    }

    private static func sync(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        return fsync(descriptor) == 0
    }

    /// The ID of the machine's current boot.
    ///
    /// Segments of an earlier boot are trusted only after an orderly end, because they were not
    /// synced.
    static var boot: String {
        let text = try? String(
            contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        let word = text?.split(whereSeparator: \.isWhitespace).first.map(String.init)
        return word ?? "unknown"
    }
}
