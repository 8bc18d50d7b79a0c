import FoundationEssentials
import Glibc

/// The folder in which segments wait until they are shipped.
///
/// A segment has its name once it is whole. The newest stays when it was shipped, because it says
/// how far the chain is.
struct SpoolFolder: Sendable {
    static let ending = "-spool"
    private static let waiting = ".segment"
    private static let shipped = ".shipped"
    private static let closed = "closed"
    private static let noted = "marks"

    let path: String

    /// A segment by its number.
    struct Entry: Sendable, Hashable {
        let sequence: UInt64
        let isShipped: Bool
        let name: String
    }

    init(of database: String) {
        path = database + Self.ending
    }

    /// The file in which marks stand until their frames are in a segment.
    var marks: String { "\(path)/\(Self.noted)" }

    /// The segments in order.
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

    /// The path of a segment that waits.
    func file(_ sequence: UInt64) -> String { "\(path)/\(Self.name(sequence))\(Self.waiting)" }

    private static func name(_ sequence: UInt64) -> String {
        let digits = String(sequence)
        return String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
    }

    /// Makes the folder, for its owner only.
    func make() throws(SpoolFailure) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw SpoolFailure("\(path) cannot be made", errno)
        }
    }

    /// Removes all that is in it.
    func clear() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
            unlink("\(path)/\(name)")
        }
    }

    /// Writes a segment, and lets go of the shipped one before it.
    ///
    /// It is not synced: what a power cut takes is seen at the next start, which begins a chain.
    ///
    /// - Returns: Its bytes.
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

    /// Lets go of a segment that was shipped; the newest stays as the place of the chain.
    func letGo(_ sequence: UInt64, isNewest: Bool) {
        let name = file(sequence)
        if isNewest {
            rename(name, "\(path)/\(Self.name(sequence))\(Self.shipped)")
        } else {
            unlink(name)
        }
    }

    /// The header of a segment.
    func header(of entry: Entry) -> SegmentHeader? {
        let file = open("\(path)/\(entry.name)", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        // After days without the destination a start reads tens of thousands.
        for size in [Self.usualHeaderBytes, SegmentHeader.maximumBytes] {
            var bytes = [UInt8](repeating: 0, count: size)
            let count = pread(file, &bytes, size, 0)
            guard count >= 0 else { return nil }
            if let found = SegmentHeader.read(bytes.prefix(count)) { return found.header }
            guard count == size else { return nil }
        }
        return nil
    }

    /// A header with a hundred marks, which is more than most have.
    private static let usualHeaderBytes = 16 << 10

    /// The bytes of a segment.
    func bytes(of entry: Entry) -> Int {
        var found = stat()
        return stat("\(path)/\(entry.name)", &found) == 0 ? Int(found.st_size) : 0
    }

    // MARK: An orderly end

    /// Has all that is here written to the disk, and says that it is.
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

    /// Whether the last end was an orderly one at this place; it is forgotten.
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

    /// Which start of the machine this is: what was not synced before another is not believed.
    static var boot: String {
        let text = try? String(
            contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        let word = text?.split(whereSeparator: \.isWhitespace).first.map(String.init)
        return word ?? "unknown"
    }
}
