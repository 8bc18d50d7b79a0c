import FoundationEssentials
import Glibc

/// The write-ahead log as a file that is read past SQLite.
///
/// SQLite's locks are on the database file and the log's index, not on the log. So closing a
/// descriptor of the log releases none of them.
struct LogFile: ~Copyable {
    private let descriptor: Int32
    let generation: LogGeneration

    /// Opens the log at `path`, which must be the file `own` if that is known; `nil` if there is
    /// none or it is empty.
    ///
    /// - Throws: ``SpoolFailure`` if it cannot be opened, or is another file.
    init?(_ path: String, own: FileIdentity?) throws(SpoolFailure) {
        descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT {
                if own != nil { throw .logExchanged }
                return nil
            }
            throw SpoolFailure("the write-ahead log cannot be opened", errno)
        }
        guard Self.isOwn(descriptor, own) else {
            Glibc.close(descriptor)
            throw .logExchanged
        }
        var header = [UInt8](repeating: 0, count: LogGeneration.headerBytes)
        let count = pread(descriptor, &header, header.count, 0)
        guard count == header.count, let found = LogGeneration(header: header) else {
            Glibc.close(descriptor)
            return nil
        }
        generation = found
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Returns whether an open file is `own`, if that is known.
    static func isOwn(_ descriptor: Int32, _ own: FileIdentity?) -> Bool {
        guard let own else { return true }
        var found = stat()
        return fstat(descriptor, &found) == 0 && FileIdentity(found).isSame(as: own)
    }

    /// Reads `count` frames from frame `number` on; fewer at the end of the file.
    func frames(_ number: Int, _ count: Int) throws(SpoolFailure) -> [UInt8] {
        let bytes = try read(generation.offset(of: number), count * generation.frameBytes)
        return Array(bytes.prefix(bytes.count / generation.frameBytes * generation.frameBytes))
    }

    /// Returns the checksum that frame `number` carries.
    ///
    /// - Throws: ``SpoolFailure`` if the frame is not of this generation.
    func sum(of number: Int) throws(SpoolFailure) -> [UInt8] {
        let header = try read(generation.offset(of: number), LogGeneration.frameHeaderBytes)
        guard header.count == LogGeneration.frameHeaderBytes,
            Array(header[8..<16]) == generation.salt
        else { throw SpoolFailure("frame \(number) does not belong to this write-ahead log") }
        return Array(header[16..<24])
    }

    /// Returns the last frame that ends a commit in the valid frames after frame `number`; `number`
    /// if there is none.
    ///
    /// `sum` is the checksum of frame `number`, from which the checksums of the frames after it
    /// follow. The log is read up to its last valid frame.
    func lastCommit(after number: Int, _ sum: [UInt8]) throws(SpoolFailure) -> Int {
        var (last, next, sum) = (number, number + 1, sum)
        while true {
            let frames = try frames(next, Self.framesAtOnce)
            let count = generation.follow(frames, from: &sum)
            for index in 0..<count
            where generation.pagesAfterCommit(frames, at: index * generation.frameBytes) > 0 {
                last = next + index
            }
            next += count
            guard count == Self.framesAtOnce else { return last }
        }
    }

    /// The number of frames in one read: about a megabyte.
    static let framesAtOnce = 256

    private func read(_ offset: Int, _ count: Int) throws(SpoolFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = pread(descriptor, &bytes, count, off_t(offset))
        guard read >= 0 else { throw SpoolFailure("the write-ahead log cannot be read", errno) }
        return read == count ? bytes : Array(bytes.prefix(read))
    }
}

/// The reason why a chain of segments cannot continue.
struct SpoolFailure: Error, CustomStringConvertible {
    let description: String

    /// The log is no longer the file that the store has open.
    static let logExchanged = SpoolFailure(
        "the write-ahead log was moved, removed or exchanged")

    init(_ sentence: String, _ code: Int32? = nil) {
        description = code.map { "\(sentence): \(String(cString: strerror($0)))" } ?? sentence
    }
}
